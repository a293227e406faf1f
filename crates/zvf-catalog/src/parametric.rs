//! Parametric objects: planes, lines, spheres.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::{join, try_join, try_join_all};
use zvf_format::numeric::{ByteOrder, Dtype, Kind};
use zvf_model::{
    array::{ParametricObjects, ParametricType, ParametricTypes},
    attribute_name::label,
    fetch::{AnyArray, BoxFuture, FetchProblem},
    key::Key,
    layout::RootArrayRole,
    zarr::Node,
};

use crate::{
    catalog::Catalog,
    chunked_array::child,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    tables::{ByteStringArray, GroupList, RowArray},
};
use zvf_model::column::Column;

/// The parametric objects of a store. They belong to no level.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParametricGeometry {
    /// Types of objects, by id.
    pub types: BTreeMap<u64, ParametricType>,
    /// The objects.
    pub objects: Vec<ParametricObject>,
    /// Attributes of the objects, one row per object; `None` if the store cannot list them.
    pub attributes: Option<Vec<Column>>,
    /// Groups of objects by position; `None` if there are none.
    pub groups: Option<GroupList>,
    /// Attributes of the groups, one row per group; `None` if the store cannot list them.
    pub group_attributes: Option<Vec<Column>>,
}

/// An object given by the coefficients of a formula.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParametricObject {
    /// Name of the object; `None` if the store has no names.
    pub name: Option<String>,
    /// Id of the object's type.
    pub type_id: u64,
    /// Name of the object's type; `None` if the store does not define the type.
    pub type_name: Option<String>,
    /// Coefficients in the order of the type. For an unknown type, all coefficients up to the last
    /// that is not NaN.
    pub coefficients: Vec<Coefficient>,
}

/// A coefficient of a formula.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Coefficient {
    /// Name of the coefficient; `None` if the type is unknown.
    pub name: Option<String>,
    /// Value of the coefficient.
    pub value: f64,
}

/// The storage of object names.
enum Names {
    None,
    /// One byte string per name.
    Items(ByteStringArray),
    /// Text with line feeds between names.
    Lines(RowArray),
}

impl Catalog<'_> {
    /// Reads the parametric objects of the store; `None` if it has none. Takes three round trips
    /// and a listing.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if data is damaged.
    pub fn parametric(&self) -> BoxFuture<'_, Result<Option<ParametricGeometry>, CatalogError>> {
        Box::pin(async move {
            let node = self.root_key(&RootArrayRole::Parametric)?;
            let keys = [
                node.clone(),
                child(&node, "objects")?,
                child(&child(&node, "objects")?, "data")?,
                child(&node, "names")?,
                child(&child(&node, "names")?, "data")?,
            ];
            let mut nodes = self.fetch.nodes(&keys).await?.into_iter();
            let Some(group) = nodes.next().flatten() else {
                return Ok(None);
            };
            let types = ParametricTypes::parse(&node, group.attributes())?
                .value
                .types;
            let mut next = || nodes.next().flatten();
            let (objects, objects_data, names, names_data) = (next(), next(), next(), next());
            let [_, objects_key, objects_data_key, names_key, names_data_key] = &keys;
            let rows = match objects {
                Some(described) => {
                    let metadata =
                        ParametricObjects::parse(objects_key, described.attributes())?.value;
                    let array = match described {
                        Node::Array(array) => {
                            RowArray::new(self.fetch.array(objects_key, Arc::new(array))?)?
                        }
                        Node::Group(_) => {
                            let array = self.array_at(objects_data_key, objects_data)?;
                            let dtype = Dtype::new(Kind::Float64, ByteOrder::Little);
                            RowArray::blob(array, dtype, metadata.max_row_length)?
                        }
                    };
                    check_shape(&array, &metadata)?;
                    Some(array)
                }
                // Writers store types before the first object.
                None => None,
            };
            let names = match names {
                None => Names::None,
                Some(Node::Array(array)) => Names::Items(ByteStringArray::new(
                    self.fetch.array(names_key, Arc::new(array))?,
                )?),
                Some(Node::Group(_)) => {
                    Names::Lines(RowArray::new(self.array_at(names_data_key, names_data)?)?)
                }
            };
            let objects = self.parametric_objects(rows, names, &types);
            let groups = async {
                let key = child(&node, "groups")?;
                let diagnostics = &Diagnostics::new(false);
                self.groups_at(&key, self.layout.tables, diagnostics).await
            };
            let attributes = self.parametric_columns(&node, "object_attributes");
            let group_attributes = self.parametric_columns(&node, "group_attributes");
            let columns = try_join(attributes, group_attributes);
            let (objects, (groups, columns)) = join(objects, join(groups, columns)).await;
            let (attributes, group_attributes) = columns?;
            Ok(Some(ParametricGeometry {
                types,
                objects: objects?,
                attributes,
                groups: groups?,
                group_attributes,
            }))
        })
    }

    async fn parametric_objects(
        &self,
        rows: Option<RowArray>,
        names: Names,
        types: &BTreeMap<u64, ParametricType>,
    ) -> Result<Vec<ParametricObject>, CatalogError> {
        let Some(rows) = rows else {
            return Ok(Vec::new());
        };
        // Pairs each number with the name of its coefficient.
        let bytes = rows.size(None).saturating_mul(8);
        let budget = self.fetch.budget();
        if bytes > budget {
            let what = "the parametric objects";
            return Err(CatalogError::OverBudget {
                what,
                bytes,
                budget,
            });
        }
        let request = rows.request(None);
        let mut wanted = request.wanted.clone();
        let lines = match &names {
            Names::None => None,
            Names::Items(items) => {
                wanted.extend((0..items.cells()).map(|cell| items.cell_request(cell)));
                None
            }
            Names::Lines(lines) => {
                let request = lines.request(None);
                wanted.extend(request.wanted.iter().cloned());
                Some(request)
            }
        };
        let mut results = self.fetch.cells(&wanted).await;
        let of_names = results.split_off(request.wanted.len().min(results.len()));
        let read = rows.finish(&request, results);
        if let Some((_, damage)) = read.damaged.into_iter().next() {
            return Err(damage.into());
        }
        let names = match (&names, lines) {
            (Names::Items(items), _) => {
                let mut names = Vec::new();
                for (cell, result) in (0..).zip(of_names) {
                    let damage = |fault| items.damage(cell, fault);
                    let payload = result.map_err(|error| damage(Fault::Fetch(error)))?;
                    let (_, count) = items.rows_of(cell);
                    let Some(payload) = payload else {
                        let count = usize::try_from(count).unwrap_or(0);
                        names.extend(vec![String::new(); count]);
                        continue;
                    };
                    for name in items.items(cell, &payload.bytes)? {
                        names.push(text(name).ok_or_else(|| damage(Fault::Text))?);
                    }
                }
                check_names(items.node(), &names, rows.rows)?;
                Some(names)
            }
            (Names::Lines(lines), Some(request)) => {
                let read = lines.finish(&request, of_names);
                if let Some((_, damage)) = read.damaged.into_iter().next() {
                    return Err(damage.into());
                }
                let all =
                    text(&read.bytes).ok_or_else(|| Damage::new(lines.node(), Fault::Text))?;
                let names = match (all.is_empty(), rows.rows) {
                    (true, 0) => Vec::new(),
                    _ => all.split('\n').map(str::to_owned).collect(),
                };
                check_names(lines.node(), &names, rows.rows)?;
                Some(names)
            }
            _ => None,
        };
        let mut objects = Vec::new();
        let row = usize::try_from(rows.row()).unwrap_or(usize::MAX).max(1);
        for (index, numbers) in read.bytes.chunks(row).enumerate() {
            let name = names.as_ref().and_then(|names| names.get(index)).cloned();
            let (numbers, _) = numbers.as_chunks::<8>();
            let numbers = numbers.iter().map(|number| f64::from_le_bytes(*number));
            let object = object(name, &numbers.collect::<Vec<f64>>(), types);
            objects.push(object.ok_or_else(|| {
                let row = u64::try_from(index).unwrap_or(u64::MAX);
                let source = Box::new(Fault::Range);
                Damage::new(rows.node(), Fault::Row { row, source })
            })?);
        }
        Ok(objects)
    }

    /// Reads the attributes in a folder; `None` if the store cannot list.
    async fn parametric_columns(
        &self,
        node: &Key,
        folder: &str,
    ) -> Result<Option<Vec<Column>>, CatalogError> {
        let folder = child(node, folder)?;
        let names = match self.fetch.children(&folder).await {
            Err(error) if error.problem == FetchProblem::Unlistable => return Ok(None),
            names => names?,
        };
        let columns = names.iter().map(|name| async {
            let key = child(&folder, name)?;
            let table = self
                .table_at(&key, &label(name))
                .await?
                .ok_or_else(|| Damage::new(&key, Fault::Missing))?;
            self.table_column(&table, None, &Diagnostics::new(false))
                .await
        });
        try_join_all(columns).await.map(Some)
    }

    fn array_at(&self, key: &Key, node: Option<Node>) -> Result<AnyArray, CatalogError> {
        match node {
            Some(Node::Array(array)) => Ok(self.fetch.array(key, Arc::new(array))?),
            Some(Node::Group(_)) => Err(Damage::new(key, Fault::Kind).into()),
            None => Err(Damage::new(key, Fault::Missing).into()),
        }
    }

    fn root_key(&self, part: &RootArrayRole<'_>) -> Result<Key, CatalogError> {
        let key = self
            .layout
            .root_part(part)
            .map_err(|source| CatalogError::Name {
                name: "parametric".to_owned(),
                source,
            })?;
        Ok(key.unwrap_or_else(Key::root))
    }
}

fn check_shape(array: &RowArray, metadata: &ParametricObjects) -> Result<(), Damage> {
    if array.kind() != Some(Kind::Float64) {
        return Err(Damage::new(array.node(), Fault::Kind));
    }
    let counts = [
        (array.rows, metadata.num_objects),
        (array.columns, metadata.max_row_length),
    ];
    match counts
        .into_iter()
        .find(|(found, expected)| found != expected)
    {
        None => Ok(()),
        Some((found, expected)) => Err(Damage::new(array.node(), Fault::Count { found, expected })),
    }
}

fn check_names(key: &Key, names: &[String], expected: u64) -> Result<(), Damage> {
    let found = u64::try_from(names.len()).unwrap_or(u64::MAX);
    if found == expected {
        return Ok(());
    }
    Err(Damage::new(key, Fault::Count { found, expected }))
}

fn text(bytes: &[u8]) -> Option<String> {
    core::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Decodes a row: the id of a type, coefficients, and NaN as padding. Returns `None` if the id is
/// not an integer or the row is shorter than the type.
fn object(
    name: Option<String>,
    row: &[f64],
    types: &BTreeMap<u64, ParametricType>,
) -> Option<ParametricObject> {
    let (first, numbers) = row.split_first()?;
    let type_id = whole(*first)?;
    let coefficient = |name: Option<&String>, value: f64| Coefficient {
        name: name.cloned(),
        value,
    };
    let of_type = types.get(&type_id);
    let coefficients = if let Some(of_type) = of_type {
        let numbers = numbers.get(..of_type.coefficients.len())?;
        let names = of_type.coefficients.iter();
        let pairs = names.zip(numbers);
        pairs
            .map(|(name, value)| coefficient(Some(name), *value))
            .collect()
    } else {
        let last = numbers.iter().rposition(|number| !number.is_nan());
        let end = last.map_or(0, |last| last.saturating_add(1));
        let numbers = numbers.iter().take(end);
        numbers.map(|value| coefficient(None, *value)).collect()
    };
    Some(ParametricObject {
        name,
        type_id,
        type_name: of_type.map(|of_type| of_type.name.clone()),
        coefficients,
    })
}

/// Converts a float that is an integer up to 2^53.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "exact for whole numbers in the range that was checked"
)]
fn whole(number: f64) -> Option<u64> {
    let exact = 9_007_199_254_740_992.0;
    ((0.0..=exact).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}
