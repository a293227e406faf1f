//! Formulas of a plan.

use std::collections::BTreeMap;

use zvf_format::{groups, open_rows};
use zvf_model::{
    array::{Groups, ParametricNames, ParametricObjects, ParametricType, ParametricTypes},
    key::Key,
    layout::RootArrayRole,
};

use super::WritePlan;
use crate::{
    error::BuildError, metadata::Encoding, objects::distinct_members, output::Output, tables,
};

/// Writes the parametric objects of a store.
pub(crate) fn write(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let Some(parametric) = &plan.design.parametric else {
        return Ok(());
    };
    let layout = plan.design.profile.layout();
    let types = parametric
        .types()
        .into_iter()
        .map(|(number, (name, coefficients))| {
            (number.into(), ParametricType { name, coefficients })
        });
    let types = ParametricTypes {
        types: types.collect(),
    };
    let key = layout.root_node(&RootArrayRole::Parametric)?;
    outputs.push(Output::group(key, types.to_attributes()));
    if parametric.objects.is_empty() {
        return Ok(());
    }
    let (width, rows) = parametric.rows();
    let objects = ParametricObjects {
        num_objects: parametric.objects.len() as u64,
        max_row_length: width as u64,
    };
    let names = parametric.names();
    let named = ParametricNames {
        num_objects: names.len() as u64,
    };
    let grouped = Groups {
        is_tagged: false,
        num_groups: Some(parametric.groups.len() as u64),
        ranges: BTreeMap::new(),
    };
    let members: Vec<Vec<u8>> = parametric
        .groups
        .iter()
        .map(|ids| groups::encode_list(&distinct_members(ids)))
        .collect();
    let encoding = Encoding::of_tables(&plan.design);
    let parts = [
        RootArrayRole::ParametricObjects,
        RootArrayRole::ParametricNames,
        RootArrayRole::ParametricGroups,
    ];
    let described = [
        objects.to_attributes(),
        named.to_attributes(),
        grouped.to_attributes(),
    ];
    if plan.design.profile.is_current() {
        let [objects_key, names_key, groups_key] = parts.map(|part| layout.root_values(&part));
        let [objects, named, grouped] = described;
        let values = tables::EncodedRows::floats(width, &rows);
        tables::rows(
            outputs,
            encoding.of_numbers(8),
            &objects_key?,
            objects,
            &values,
        );
        let mut strings = |key: &Key, attributes, items: &[Vec<u8>]| {
            let codecs = encoding.of_strings();
            tables::strings(outputs, codecs, key, attributes, items, items.len())
        };
        let names: Vec<Vec<u8>> = names.into_iter().map(String::into_bytes).collect();
        strings(&names_key?, named, &names)?;
        if !members.is_empty() {
            strings(&groups_key?, grouped, &members)?;
        }
        return Ok(());
    }
    let members = (!members.is_empty()).then(|| open_rows::encode(&members));
    let offsets = members.as_ref().map(|members| members.offsets.clone());
    let blobs = [
        Some(rows),
        Some(names.join("\n").into_bytes()),
        members.map(|members| members.data),
    ];
    for ((part, attributes), bytes) in parts.iter().zip(described).zip(blobs) {
        if let Some(bytes) = bytes {
            outputs.push(Output::group(layout.root_node(part)?, attributes));
            tables::blob(outputs, &encoding, layout.root_values(part)?, bytes);
        }
    }
    if let Some(offsets) = offsets {
        let key = layout.root_values(&RootArrayRole::ParametricGroupOffsets)?;
        tables::blob(outputs, &encoding, key, offsets);
    }
    Ok(())
}
