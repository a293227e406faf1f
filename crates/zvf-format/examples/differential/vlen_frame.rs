//! Frames as `{"cells": [hex…]}`.

use serde_json::{Value, json};
use zvf_format::vlen::{self, VlenFrame};
use zvf_testkit::golden::unhex;

use crate::{Codec, Outcome, hex, list, text};

pub(crate) const CODEC: Codec = Codec {
    name: "vlen_frame",
    decode,
    encode,
};

fn decode(bytes: &[u8], _with: &Value) -> Outcome<Value> {
    let frame = VlenFrame::parse(bytes)?;
    Ok(json!({ "cells": frame.iter().map(hex).collect::<Vec<_>>() }))
}

fn encode(input: &Value) -> Outcome<Vec<u8>> {
    let cells = list(&input["cells"])?
        .iter()
        .map(|cell| text(cell).map(unhex));
    Ok(vlen::encode(&cells.collect::<Outcome<Vec<_>>>()?)?)
}
