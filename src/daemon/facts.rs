//! Facts that other processes ask the writer to append: parsed strictly, and only of kinds that no
//! decision of the loop hangs on.

use super::clock::wall;
use crate::ledger::{FactBody, NewFact};
use serde_json::Value;

/// Why a client's fact is not appended.
#[derive(Debug, thiserror::Error)]
pub(super) enum FactError {
    /// Not of the ledger's shape.
    #[error("fact {index}: {detail}")]
    Shape {
        /// Position in the request.
        index: usize,
        /// What is wrong.
        detail: String,
    },
    /// A kind that only the loop itself records.
    #[error("fact {index}: {kind:?} is recorded by the loop alone; use the request for it")]
    Kind {
        /// Position in the request.
        index: usize,
        /// The kind.
        kind: String,
    },
}

/// Parses a client's facts: all or none.
pub(super) fn parse(facts: &[Value]) -> Result<Vec<NewFact>, FactError> {
    facts
        .iter()
        .enumerate()
        .map(|(index, value)| parse_one(index, value))
        .collect()
}

fn parse_one(index: usize, value: &Value) -> Result<NewFact, FactError> {
    let shape = |detail: String| FactError::Shape { index, detail };
    let object = value
        .as_object()
        .ok_or_else(|| shape("not an object".to_owned()))?;
    let field = |name: &str| object.get(name).filter(|v| !v.is_null()).cloned();
    let kind = field("kind")
        .and_then(|k| k.as_str().map(str::to_owned))
        .ok_or_else(|| shape("no kind".to_owned()))?;
    let data = field("data").unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let body: FactBody = serde_json::from_value(serde_json::json!({ "kind": kind, "data": data }))
        .map_err(|e| shape(e.to_string()))?;
    if !may_come_from_outside(&body) {
        return Err(FactError::Kind { index, kind });
    }
    let parse = |name: &str| field(name).and_then(|v| v.as_str().map(str::to_owned));
    let task = parse("task")
        .map(|t| t.parse())
        .transpose()
        .map_err(|e| shape(format!("task: {e}")))?;
    let run = parse("run")
        .map(|r| r.parse())
        .transpose()
        .map_err(|e| shape(format!("run: {e}")))?;
    let at = match parse("at") {
        Some(text) => text
            .parse()
            .map_err(|_| shape(format!("at: {text:?} is not a timestamp")))?,
        None => wall(),
    };
    Ok(NewFact {
        at,
        task,
        run,
        body,
    })
}

fn may_come_from_outside(body: &FactBody) -> bool {
    matches!(
        body,
        FactBody::RunIntended { .. }
            | FactBody::RunStarted { .. }
            | FactBody::RunExited { .. }
            | FactBody::LeaseClaimed { .. }
            | FactBody::LeaseReleased { .. }
            | FactBody::LeaseReclaimed { .. }
            | FactBody::TaskAdded { .. }
            | FactBody::Warning { .. }
    )
}
