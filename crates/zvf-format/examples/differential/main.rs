//! Runs codec requests, so that another implementation can be compared.
//!
//! One JSON object a line on stdin, one result a line on stdout, in order:
//!
//! ```json
//! {"codec": "fragment_index", "op": "decode", "hex": "4746565a…"}
//! {"output": {"fragments": [{"range": [0, 4]}, {"list": [12, 7, 19]}]}}
//! {"codec": "fragment_index", "op": "encode", "input": {"fragments": [{"range": [0, 4]}]}}
//! {"hex": "4746565a…"}
//! ```
//!
//! `with` contains the parameters of a codec other than the bytes. The result of rejected input is
//! `error`; a malformed request ends the program.

use std::{
    error::Error,
    fmt::Write as _,
    io::{self, BufRead, Write},
};

use serde_json::{Value, json};
use zvf_testkit::golden::unhex;

mod dictionary;
mod fragment_index;
mod link_cells;
mod object_manifest;
mod ragged_links;
mod vlen_frame;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The two directions of a codec. The module of the codec defines the shape of input and output,
/// usually that of its file in `testdata/codec`.
struct Codec {
    name: &'static str,
    /// Decodes bytes with the parameters in `with`.
    decode: fn(&[u8], &Value) -> Outcome<Value>,
    encode: fn(&Value) -> Outcome<Vec<u8>>,
}

const CODECS: &[Codec] = &[
    fragment_index::CODEC,
    object_manifest::CODEC,
    ragged_links::CODEC,
    link_cells::CODEC,
    vlen_frame::CODEC,
    dictionary::CODEC,
];

fn main() -> Outcome<()> {
    let mut out = io::stdout().lock();
    for request in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&request?)?;
        writeln!(out, "{}", respond(&request)?)?;
    }
    Ok(())
}

fn respond(request: &Value) -> Outcome<Value> {
    let codec = CODECS
        .iter()
        .find(|codec| request["codec"] == codec.name)
        .ok_or_else(|| format!("no codec {}", request["codec"]))?;
    let result = match request["op"].as_str() {
        Some("decode") => {
            let bytes = unhex(request["hex"].as_str().ok_or("no hex")?);
            (codec.decode)(&bytes, &request["with"]).map(|output| json!({ "output": output }))
        }
        Some("encode") => {
            (codec.encode)(&request["input"]).map(|bytes| json!({ "hex": hex(&bytes) }))
        }
        _ => return Err(format!("no operation {}", request["op"]).into()),
    };
    Ok(result.unwrap_or_else(|error| json!({ "error": error.to_string() })))
}

fn list(value: &Value) -> Outcome<&[Value]> {
    Ok(value
        .as_array()
        .ok_or_else(|| format!("{value} is not a list"))?)
}

fn text(value: &Value) -> Outcome<&str> {
    Ok(value
        .as_str()
        .ok_or_else(|| format!("{value} is not text"))?)
}

fn number<T: TryFrom<i128>>(value: &Value) -> Outcome<T> {
    let number = value
        .as_i64()
        .map(i128::from)
        .or_else(|| value.as_u64().map(i128::from));
    let number = number.and_then(|number| T::try_from(number).ok());
    Ok(number.ok_or_else(|| format!("{value} is no such number"))?)
}

fn numbers<T: TryFrom<i128>>(value: &Value) -> Outcome<Vec<T>> {
    list(value)?.iter().map(number).collect()
}

fn pair<T: TryFrom<i128>>(value: &Value) -> Outcome<[T; 2]> {
    let numbers = numbers(value)?.try_into();
    numbers.map_err(|_| format!("{value} is not a pair").into())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
