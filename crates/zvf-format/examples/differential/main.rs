//! Answers codec requests, so that another implementation can be compared.
//!
//! One JSON object a line on stdin, one answer a line on stdout, in order:
//!
//! ```json
//! {"codec": "fragment_index", "op": "decode", "hex": "4746565a…"}
//! {"output": {"fragments": [{"range": [0, 4]}, {"list": [12, 7, 19]}]}}
//! {"codec": "fragment_index", "op": "encode", "input": {"fragments": [{"range": [0, 4]}]}}
//! {"hex": "4746565a…"}
//! ```
//!
//! What a codec needs to know beside the bytes is in `with`. Refused input is
//! answered with `error`; a request that makes no sense ends the program.

use std::{
    error::Error,
    fmt::Write as _,
    io::{self, BufRead, Write},
};

use serde_json::{Value, json};
use zvf_testkit::golden::unhex;

mod fragment_index;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A codec's two directions. Input and output have the shape of the codec's
/// file in `testdata/codec`.
struct Codec {
    name: &'static str,
    /// Bytes, with what `with` says.
    decode: fn(&[u8], &Value) -> Outcome<Value>,
    encode: fn(&Value) -> Outcome<Vec<u8>>,
}

const CODECS: &[Codec] = &[fragment_index::CODEC];

fn main() -> Outcome<()> {
    let mut answers = io::stdout().lock();
    for request in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&request?)?;
        writeln!(answers, "{}", answer(&request)?)?;
    }
    Ok(())
}

fn answer(request: &Value) -> Outcome<Value> {
    let codec = CODECS.iter().find(|codec| request["codec"] == codec.name);
    let codec = codec.ok_or_else(|| format!("no codec {}", request["codec"]))?;
    let answered = match request["op"].as_str() {
        Some("decode") => {
            let bytes = unhex(request["hex"].as_str().ok_or("no hex")?);
            (codec.decode)(&bytes, &request["with"]).map(|output| json!({ "output": output }))
        }
        Some("encode") => {
            (codec.encode)(&request["input"]).map(|bytes| json!({ "hex": hex(&bytes) }))
        }
        _ => return Err(format!("no operation {}", request["op"]).into()),
    };
    Ok(answered.unwrap_or_else(|error| json!({ "error": error.to_string() })))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
