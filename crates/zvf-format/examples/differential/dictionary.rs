//! Codes as `{"values": […], "fill": code | null, "dtype": name, "categories": […]}`, where the
//! last two are the reference's choice for the values.

use serde_json::{Value, json};
use zvf_format::{
    dictionary::{Code, CodeDtype, DictionaryCodes},
    numeric::Dtype,
};

use crate::{Codec, Outcome, list, text};

pub(crate) const CODEC: Codec = Codec {
    name: "dictionary",
    decode,
    encode,
};

fn decode(bytes: &[u8], with: &Value) -> Outcome<Value> {
    let categories = list(&with["categories"])?;
    let (count, fill) = (u32::try_from(categories.len())?, with["fill"].as_i64());
    let dtype = Dtype::parse(text(&with["dtype"])?)?;
    let codes = DictionaryCodes::parse(bytes, dtype, count, fill)?;
    let value = |code| match code {
        Code::Missing => Ok(&Value::Null),
        Code::Category(category) => Ok(&categories[usize::try_from(category)?]),
    };
    let values: Outcome<Vec<&Value>> = codes.iter().map(value).collect();
    Ok(json!({ "values": values? }))
}

fn encode(input: &Value) -> Outcome<Vec<u8>> {
    let values = list(&input["values"])?;
    // Text sorts by code points as by UTF-8 bytes.
    let mut categories: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
    categories.sort_by_key(|value| (value.as_i64(), value.as_str()));
    categories.dedup();
    if !list(&input["categories"])?
        .iter()
        .eq(categories.iter().copied())
    {
        return Err("other categories".into());
    }
    let count = u32::try_from(categories.len())?;
    let chosen = match input["fill"].as_i64() {
        None => CodeDtype::new(count),
        Some(_) => CodeDtype::with_missing(count)?,
    };
    if chosen.dtype().to_string() != text(&input["dtype"])? {
        return Err(format!("we choose {}", chosen.dtype()).into());
    }
    let code = |value: &Value| {
        let at = categories.iter().position(|category| *category == value);
        Ok(match at {
            Some(at) => Code::Category(u32::try_from(at)?),
            None => Code::Missing,
        })
    };
    let codes: Outcome<Vec<Code>> = values.iter().map(code).collect();
    Ok(chosen.encode(&codes?)?)
}
