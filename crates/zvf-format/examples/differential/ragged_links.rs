//! Grouped link rows as `{"width": L, "permuted": bool, "groups": [[{"code": c, "stored": […]}]]}`.

use serde_json::{Value, json};
use zvf_format::links::{
    LinkRow, LinkRows, LinkRowsBuilder, LinkWidth, Permutation, RaggedLinks, RowForm,
};

use crate::{Codec, Outcome, list, number, numbers};

pub(crate) const CODEC: Codec = Codec {
    name: "ragged_links",
    decode,
    encode,
};

fn rows_of(value: &Value) -> Outcome<(LinkWidth, RowForm)> {
    let form = if value["permuted"] == true {
        RowForm::Permuted
    } else {
        RowForm::Plain
    };
    Ok((LinkWidth::new(number(&value["width"])?)?, form))
}

fn decode(bytes: &[u8], with: &Value) -> Outcome<Value> {
    let (links, form) = rows_of(with)?;
    let row = |row: LinkRow<'_>| {
        let [stored, input] = [row.stored().collect(), row.input().collect::<Vec<_>>()];
        json!({ "code": row.code(), "stored": stored, "input": input })
    };
    let group = |group: LinkRows<'_>| group.iter().map(row).collect::<Vec<_>>();
    let groups = RaggedLinks::parse(bytes, links, form)?;
    Ok(json!({ "groups": groups.groups().map(group).collect::<Vec<_>>() }))
}

fn encode(input: &Value) -> Outcome<Vec<u8>> {
    let (width, form) = rows_of(input)?;
    let mut builder = LinkRowsBuilder::new(width, form);
    for group in list(&input["groups"])? {
        for row in list(group)? {
            let order = Permutation::from_code(width, number(&row["code"])?)?;
            builder.push(order, &numbers(&row["stored"])?)?;
        }
        builder.end_group();
    }
    Ok(builder.finish_ragged())
}
