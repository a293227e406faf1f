//! Parametric objects such as planes, lines and spheres, which belong to no level.

use std::collections::BTreeMap;

use crate::error::BuildError;

/// Parametric objects of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormulaSet {
    /// Further types beside planes (0), lines (1) and spheres (2): name and coefficient names.
    pub types: BTreeMap<u32, (String, Vec<String>)>,
    /// Formulas.
    pub objects: Vec<Formula>,
    /// Members of groups, as indices of formulas.
    pub groups: Vec<Vec<i64>>,
}

/// Formula of one parametric object.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// Type number.
    pub type_id: u32,
    /// Name; `None` gives the type name and the index.
    pub name: Option<String>,
    /// Coefficients in the order of the type.
    pub coefficients: Vec<f64>,
}

impl FormulaSet {
    /// Returns the built-in and declared types.
    pub(crate) fn types(&self) -> BTreeMap<u32, (String, Vec<String>)> {
        let known = [
            ("plane", &["A", "B", "C", "D"][..]),
            ("line", &["x0", "y0", "z0", "dx", "dy", "dz"]),
            ("sphere", &["cx", "cy", "cz", "r"]),
        ]
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

    /// Checks that types are declared, that each formula has the coefficients of its type and that
    /// they are finite: NaN pads short rows on disk.
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
                    why: "a name is one line",
                });
            }
        }
        let members = self.groups.iter().flatten();
        let present = |id: &&i64| usize::try_from(**id).is_ok_and(|id| id < self.objects.len());
        match members.into_iter().find(|id| !present(id)) {
            None => Ok(()),
            Some(&id) => Err(BuildError::UnknownObject {
                what: "a group of formulas".to_owned(),
                id,
            }),
        }
    }

    /// Returns the row width and the rows: type number, coefficients, NaN padding.
    pub(crate) fn rows(&self) -> (usize, Vec<u8>) {
        let longest = self.objects.iter().map(|object| object.coefficients.len());
        let width = 1 + longest.max().unwrap_or(0);
        let mut bytes = Vec::with_capacity(self.objects.len() * width * 8);
        for object in &self.objects {
            let row = [f64::from(object.type_id)]
                .into_iter()
                .chain(object.coefficients.iter().copied())
                .chain(std::iter::repeat(f64::NAN))
                .take(width);
            bytes.extend(row.flat_map(f64::to_le_bytes));
        }
        (width, bytes)
    }

    pub(crate) fn names(&self) -> Vec<String> {
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
