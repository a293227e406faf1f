//! Objects that are formulas: planes, lines, spheres. They belong to no level.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf_format::{groups, open_rows};

use crate::{
    design::Profile,
    error::BuildError,
    layout::tables,
    nodes::{self, Encoding},
    plan::{Output, WritePlan, group, says},
};

/// Objects that are formulas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parametric {
    /// Types beside planes (0), lines (1) and spheres (2): the name, and those of the
    /// coefficients.
    pub types: BTreeMap<u32, (String, Vec<String>)>,
    /// The objects.
    pub objects: Vec<Formula>,
    /// Members of groups, by the places of objects.
    pub groups: Vec<Vec<i64>>,
}

/// An object that is a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// The number of its type.
    pub type_id: u32,
    /// Its name; that of its type and its place when not said.
    pub name: Option<String>,
    /// Its coefficients, in the order of the type.
    pub coefficients: Vec<f64>,
}

impl Parametric {
    /// All types there are.
    fn types(&self) -> BTreeMap<u32, (String, Vec<String>)> {
        let known = [
            ("plane", &["A", "B", "C", "D"][..]),
            ("line", &["x0", "y0", "z0", "dx", "dy", "dz"]),
            ("sphere", &["cx", "cy", "cz", "r"]),
        ];
        let known = known
            .into_iter()
            .zip(0..)
            .map(|((name, coefficients), number)| {
                let coefficients = coefficients.iter().map(|name| (*name).to_owned());
                (number, (name.to_owned(), coefficients.collect()))
            });
        let mut types: BTreeMap<u32, (String, Vec<String>)> = known.collect();
        types.extend(self.types.clone());
        types
    }

    /// Refuses objects of unknown types, with another number of coefficients, and
    /// those that are not finite: NaN stands where a row has no more.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let types = self.types();
        for (place, object) in self.objects.iter().enumerate() {
            let Some((_, names)) = types.get(&object.type_id) else {
                return Err(BuildError::UnknownFormulaType {
                    place,
                    type_id: object.type_id,
                });
            };
            let found = object.coefficients.len();
            if found != names.len() || object.coefficients.iter().any(|x| !x.is_finite()) {
                let expected = names.len();
                return Err(BuildError::FormulaCoefficients {
                    place,
                    expected,
                    found,
                });
            }
            let name = object.name.as_deref().unwrap_or_default();
            if name.contains('\n') {
                return Err(BuildError::InvalidName {
                    what: "formula",
                    name: name.to_owned(),
                });
            }
        }
        let members = self.groups.iter().flatten();
        let there = |id: &&i64| usize::try_from(**id).is_ok_and(|id| id < self.objects.len());
        match members.into_iter().find(|id| !there(id)) {
            None => Ok(()),
            Some(&id) => Err(BuildError::UnknownObject {
                what: "a group of formulas".to_owned(),
                id,
            }),
        }
    }

    /// A row for each object: its type, its coefficients, NaN.
    fn rows(&self) -> (usize, Vec<u8>) {
        let longest = self.objects.iter().map(|object| object.coefficients.len());
        let width = 1 + longest.max().unwrap_or(0);
        let mut bytes = Vec::with_capacity(self.objects.len() * width * 8);
        for object in &self.objects {
            let row = [f64::from(object.type_id)].into_iter();
            let row = row.chain(object.coefficients.iter().copied());
            let row = row.chain(std::iter::repeat(f64::NAN)).take(width);
            bytes.extend(row.flat_map(f64::to_le_bytes));
        }
        (width, bytes)
    }

    fn names(&self) -> Vec<String> {
        let types = self.types();
        let name = |(place, object): (usize, &Formula)| match &object.name {
            Some(name) => name.clone(),
            None => {
                let of = types
                    .get(&object.type_id)
                    .map_or("object", |(name, _)| name);
                format!("{of}_{place}")
            }
        };
        self.objects.iter().enumerate().map(name).collect()
    }
}

/// Writes the formulas of a store down.
pub(crate) fn write(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let Some(parametric) = &plan.design.parametric else {
        return Ok(());
    };
    let types = parametric
        .types()
        .into_iter()
        .map(|(number, (name, coefficients))| {
            let says = json!({"name": name, "coefficients": coefficients});
            (number.to_string(), says)
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
        .map(|ids| groups::encode_list(ids))
        .collect();
    let encoding = Encoding::of_tables(&plan.design);
    if plan.design.profile == Profile::V09 {
        let codecs = encoding.codecs(nodes::bytes(8), 8);
        let values = tables::Rows::floats(width, &rows);
        tables::rows(
            outputs,
            codecs,
            "parametric/objects",
            says(objects),
            &values,
        );
        let vlen = || encoding.codecs(nodes::vlen(), 1);
        let names: Vec<Vec<u8>> = names.into_iter().map(String::into_bytes).collect();
        let count = names.len();
        tables::strings(
            outputs,
            vlen(),
            "parametric/names",
            says(names_say),
            &names,
            count,
        )?;
        if !members.is_empty() {
            let count = members.len();
            tables::strings(
                outputs,
                vlen(),
                "parametric/groups",
                says(groups_say),
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
