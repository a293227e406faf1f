//! Formulas of a plan.

use serde_json::{Map, Value, json};
use zvf_format::{groups, open_rows};

use super::WritePlan;
use crate::{
    design::Profile,
    error::BuildError,
    metadata::{self, Encoding},
    objects::distinct_members,
    output::{Output, group, json_object},
    tables,
};

/// Writes the parametric objects of a store.
pub(crate) fn write(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let Some(parametric) = &plan.design.parametric else {
        return Ok(());
    };
    let types = parametric
        .types()
        .into_iter()
        .map(|(number, (name, coefficients))| {
            let attributes = json!({"name": name, "coefficients": coefficients});
            (number.to_string(), attributes)
        });
    let types: Map<String, Value> = types.collect();
    outputs.push(group("parametric", json!({"parametric_types": types})));
    if parametric.objects.is_empty() {
        return Ok(());
    }
    let (width, rows) = parametric.rows();
    let objects = json!({
        "zv_array": "parametric_objects", "num_objects": parametric.objects.len(),
        "max_row_length": width, "dtype": "float64",
    });
    let names = parametric.names();
    let names_say = json!({"zv_array": "parametric_names", "num_objects": names.len()});
    let groups_say = json!({"num_groups": parametric.groups.len()});
    let members: Vec<Vec<u8>> = parametric
        .groups
        .iter()
        .map(|ids| groups::encode_list(&distinct_members(ids)))
        .collect();
    let encoding = Encoding::of_tables(&plan.design);
    if plan.design.profile == Profile::V09 {
        let codecs = encoding.codecs(metadata::bytes(8), 8);
        let values = tables::EncodedRows::floats(width, &rows);
        tables::rows(
            outputs,
            codecs,
            "parametric/objects",
            json_object(objects),
            &values,
        );
        let vlen = || encoding.codecs(metadata::vlen(), 1);
        let names: Vec<Vec<u8>> = names.into_iter().map(String::into_bytes).collect();
        let count = names.len();
        tables::strings(
            outputs,
            vlen(),
            "parametric/names",
            json_object(names_say),
            &names,
            count,
        )?;
        if !members.is_empty() {
            let count = members.len();
            tables::strings(
                outputs,
                vlen(),
                "parametric/groups",
                json_object(groups_say),
                &members,
                count,
            )?;
        }
        return Ok(());
    }
    outputs.push(group("parametric/objects", objects));
    tables::blob(
        outputs,
        &encoding,
        "parametric/objects/data".to_owned(),
        rows,
    );
    outputs.push(group("parametric/names", names_say));
    let names = names.join("\n").into_bytes();
    tables::blob(
        outputs,
        &encoding,
        "parametric/names/data".to_owned(),
        names,
    );
    if !members.is_empty() {
        let members = open_rows::encode(&members);
        outputs.push(group("parametric/groups", groups_say));
        tables::blob(
            outputs,
            &encoding,
            "parametric/groups/data".to_owned(),
            members.data,
        );
        tables::blob(
            outputs,
            &encoding,
            "parametric/groups/offsets".to_owned(),
            members.offsets,
        );
    }
    Ok(())
}
