use super::*;
use crate::types::{Outcome, Verdict};

fn fact(seq: u64, body: FactBody) -> Fact {
    Fact {
        seq,
        at: Timestamp::from_millis(1_767_225_600_123),
        task: Some(TaskId::new("T-0001").unwrap()),
        run: None,
        body,
    }
}

fn text(fact: &Fact, previous: Sum) -> (String, Sum) {
    let mut out = Vec::new();
    let sum = encode(fact, None, previous, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), sum)
}

#[test]
fn a_line_has_the_documented_shape() {
    let mut exited = fact(
        42,
        FactBody::RunExited {
            outcome: Outcome::TimedOut,
            exit_code: None,
            signal: Some(15),
            verdict: Verdict::Fail("says ,\"data\": {\"kind\"}".into()),
            detail: String::new(),
            started_at: Timestamp::from_millis(0),
            ended_at: Timestamp::from_millis(1),
            duration_ms: 1,
            user_ms: 2,
            system_ms: 3,
            max_rss_kib: 4,
            stdout_bytes: 5,
            stderr_bytes: 6,
            truncated: true,
            stragglers_killed: 7,
        },
    );
    exited.run = Some(RunId::new("01J8ZQ").unwrap());
    let (line, sum) = text(&exited, Sum::FIRST);
    insta::assert_snapshot!(line, @r#"{"seq":42,"at":"2026-01-01T00:00:00.123Z","kind":"run_exited","task":"T-0001","run":"01J8ZQ","data":{"outcome":"timed_out","exit_code":null,"signal":15,"verdict":{"verdict":"fail","reason":"says ,\"data\": {\"kind\"}"},"detail":"","started_at":"1970-01-01T00:00:00.000Z","ended_at":"1970-01-01T00:00:00.001Z","duration_ms":1,"user_ms":2,"system_ms":3,"max_rss_kib":4,"stdout_bytes":5,"stderr_bytes":6,"truncated":true,"stragglers_killed":7},"sum":"08a3ae2b624ec6d1"}"#);
    let back = decode(line.trim_end().as_bytes(), Some(Sum::FIRST)).unwrap();
    assert_eq!((back.fact, back.sum), (exited, sum));
}

#[test]
fn a_kind_from_another_version_is_kept() {
    let body = FactBody::Unknown {
        kind: "quota \"closed\"".into(),
        data: serde_json::json!({"provider": "x", "n": [1, 2.5, null]}),
    };
    let newer = fact(1, body);
    let (line, _) = text(&newer, Sum::FIRST);
    let back = decode(line.trim_end().as_bytes(), Some(Sum::FIRST)).unwrap();
    assert_eq!(back.fact, newer);
    // A known kind with other data than this version writes.
    let body = FactBody::Unknown {
        kind: "task_blocked".into(),
        data: serde_json::json!({"why": 7}),
    };
    let other = fact(2, body);
    let (line, _) = text(&other, Sum::FIRST);
    let back = decode(line.trim_end().as_bytes(), None).unwrap();
    assert_eq!(back.fact, other);
}

#[test]
fn every_changed_byte_of_a_line_is_found() {
    let (line, _) = text(&fact(7, FactBody::TaskRetried {}), Sum::FIRST);
    let line = line.trim_end().as_bytes();
    decode(line, Some(Sum::FIRST)).unwrap();
    for at in 0..line.len() {
        let mut changed = line.to_vec();
        changed[at] ^= 1;
        assert!(decode(&changed, Some(Sum::FIRST)).is_err(), "byte {at}");
        assert!(
            decode(&line[..at], Some(Sum::FIRST)).is_err(),
            "cut at {at}"
        );
    }
}

#[test]
fn a_line_chains_to_the_one_before() {
    let (_, first) = text(&fact(1, FactBody::TaskRetried {}), Sum::FIRST);
    let (second, _) = text(&fact(2, FactBody::TaskRetried {}), first);
    let second = second.trim_end().as_bytes();
    assert!(decode(second, Some(first)).is_ok());
    assert_eq!(decode(second, Some(Sum::FIRST)).unwrap_err(), BadLine::Sum);
    assert!(decode(second, None).is_ok());
}

#[test]
fn the_source_of_an_ingested_fact_comes_back() {
    let source = Source {
        inbox: "01J8ZQ".into(),
        seq: 9,
    };
    let fact = fact(3, FactBody::TaskRetried {});
    let mut out = Vec::new();
    encode(&fact, Some(&source), Sum::FIRST, &mut out).unwrap();
    out.pop();
    let back = decode(&out, Some(Sum::FIRST)).unwrap();
    assert_eq!(back.source, Some(source));
    assert_eq!(back.fact, fact);
}
