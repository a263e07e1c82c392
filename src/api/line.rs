//! One message is one line of JSON; lines are bounded.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line either side accepts: a batch of facts of a big task fits, a runaway does not.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Why a line is not a message.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Longer than [`LINE_BYTES_MAX`].
    #[error("line of {len} bytes, at most {max} are allowed", max = LINE_BYTES_MAX)]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// Not JSON of the expected shape.
    #[error("not a message of this protocol: {0}")]
    Json(#[from] serde_json::Error),
}

/// A message as one line with its line end.
///
/// # Errors
/// [`LineError`] when the message cannot be written as JSON or is too long.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, LineError> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() > LINE_BYTES_MAX {
        return Err(LineError::TooLong { len: line.len() });
    }
    Ok(line)
}

/// A message from one line, with or without its line end.
///
/// # Errors
/// [`LineError`] when it is too long or not of the expected shape.
pub fn decode<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    if line.len() > LINE_BYTES_MAX {
        return Err(LineError::TooLong { len: line.len() });
    }
    Ok(serde_json::from_slice(line)?)
}

#[cfg(test)]
mod tests {
    use super::super::{ErrorCode, Reply, Request, StatusReport};
    use super::*;
    use crate::types::TaskId;

    fn comes_back_request(request: &Request, expected: &str) {
        let line = encode(request).unwrap();
        assert_eq!(String::from_utf8_lossy(&line), format!("{expected}\n"));
        assert_eq!(&decode::<Request>(&line).unwrap(), request);
    }

    #[test]
    fn requests_are_one_stable_line() {
        comes_back_request(&Request::Status, r#"{"op":"status"}"#);
        comes_back_request(&Request::Stop { now: true }, r#"{"op":"stop","now":true}"#);
        comes_back_request(
            &Request::Why {
                task: TaskId::new("T-0001").unwrap(),
            },
            r#"{"op":"why","task":"T-0001"}"#,
        );
        comes_back_request(
            &Request::Follow { since: 7 },
            r#"{"op":"follow","since":7}"#,
        );
    }

    #[test]
    fn replies_come_back() {
        for reply in [
            Reply::done("paused"),
            Reply::error(ErrorCode::Refused, "no"),
            Reply::Appended { seq: 3 },
            Reply::Status(Box::default()),
            Reply::List { tasks: vec![] },
        ] {
            let line = encode(&reply).unwrap();
            assert_eq!(decode::<Reply>(&line).unwrap(), reply);
        }
        let newer = br#"{"reply":"error","code":"brand_new","message":"x"}"#;
        assert_eq!(
            decode::<Reply>(newer).unwrap(),
            Reply::error(ErrorCode::Unknown, "x")
        );
    }

    #[test]
    fn status_has_the_keys_of_the_contract() {
        let value = serde_json::to_value(StatusReport::default()).unwrap();
        for key in ["daemon", "slots", "tasks", "runs", "waiting", "quota"] {
            assert!(value.get(key).is_some(), "{key}");
        }
        assert_eq!(value["daemon"]["running"], false);
        assert_eq!(value["tasks"]["deferred"], 0);
    }

    #[test]
    fn a_line_is_bounded() {
        let long = vec![b' '; LINE_BYTES_MAX + 1];
        assert!(matches!(
            decode::<Request>(&long),
            Err(LineError::TooLong { .. })
        ));
        assert!(matches!(decode::<Request>(b"{"), Err(LineError::Json(_))));
    }
}
