//! Descriptions of attributes: type, channels, unit, and the range of the values.

use std::ops::ControlFlow;

use futures_util::future::try_join_all;
use serde_json::Value as Json;
use zvf_catalog::{CatalogError, Scope, Selection};
use zvf_format::{numeric::Value, path::Delta};
use zvf_model::{
    array::CellAttribute,
    attribute_name::stored_name,
    column::{Column, ColumnValues},
    fetch::FetchProblem,
    key::Key,
    layout::ArrayRole,
    level::LevelId,
    metadata::Attributes,
    root::AttributeDeclarations,
    zarr::Node,
};
use zvf_query::{LevelChoice, Query, QueryResult};

use super::Dataset;
use crate::{
    error::{Error, boxed},
    failure::Failure,
    nodes,
};

/// An attribute of a level, as its metadata describe it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttributeInfo {
    /// Family of the attribute.
    pub scope: Scope,
    /// Name of the attribute.
    pub name: String,
    /// Type of a value: the name of a numeric type, or `text`.
    pub data_type: String,
    /// Values in a row; `None` where the metadata do not tell, as in many stores before 0.9.
    pub channels: Option<u64>,
    /// Names of the channels, where the store has them.
    pub channel_names: Vec<String>,
    /// Unit of the values, where the store declares one.
    pub unit: Option<String>,
    /// Description of the attribute, where the store has one.
    pub description: Option<String>,
    /// Number of distinct words of a text, where the metadata list them.
    pub categories: Option<u64>,
}

/// Smallest and largest value of an attribute.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ValueRange {
    /// Values in a row; `None` without rows.
    pub channels: Option<u64>,
    /// Smallest and largest value over all channels; `None` for text and without values.
    pub limits: Option<(Value, Value)>,
    /// Number of rows without a value, and of NaN.
    pub nulls: u64,
}

impl ValueRange {
    /// Extends the range to the values of a column.
    fn add(&mut self, column: &Column) {
        let rows = match &column.values {
            ColumnValues::Numeric(numbers) => {
                self.channels = Some(numbers.width.into());
                let Some(view) = numbers.view() else { return };
                for row in (0..view.rows()).filter(|row| !column.is_null(*row)) {
                    for channel in 0..numbers.width {
                        self.add_value(view.value(row, channel));
                    }
                }
                view.rows()
            }
            ColumnValues::Dictionary { codes, .. } => codes.len(),
        };
        let nulls = (0..rows).filter(|row| column.is_null(*row)).count();
        let nulls = u64::try_from(nulls).unwrap_or(u64::MAX);
        self.nulls = self.nulls.saturating_add(nulls);
    }

    fn add_value(&mut self, value: Option<Value>) {
        let Some(value) = value else { return };
        match value {
            Value::Complex { .. } => return,
            Value::Float(float) if float.is_nan() => {
                self.nulls = self.nulls.saturating_add(1);
                return;
            }
            _ => {}
        }
        self.limits = Some(match self.limits {
            None => (value, value),
            Some((low, high)) => (
                if is_less(value, low) { value } else { low },
                if is_less(high, value) { value } else { high },
            ),
        });
    }
}

/// Compares two values of one column; integers are compared exactly.
fn is_less(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a < b,
        (Value::UInt(a), Value::UInt(b)) => a < b,
        (a, b) => a.to_f64() < b.to_f64(),
    }
}

impl Dataset {
    /// Describes the attributes of a level, by scope and name.
    ///
    /// Takes a listing of each family and one round trip for the metadata; values are not read.
    ///
    /// # Errors
    ///
    /// Returns [`Error`] if the store cannot list, or the metadata cannot be read.
    pub async fn attributes(&self, level: LevelId) -> Result<Vec<AttributeInfo>, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                dataset.verify().await?;
                let catalog = dataset.catalog();
                let names = Scope::ALL.map(|scope| {
                    let names = catalog.attribute_list(level, scope);
                    async move { names.await.map(|names| (scope, names)) }
                });
                let names = try_join_all(names).await?;
                let all = names.iter().flat_map(|(scope, names)| {
                    names
                        .iter()
                        .map(|name| dataset.attribute(level, *scope, name))
                });
                try_join_all(all).await
            })
        }))
        .await
    }

    async fn attribute(
        &self,
        level: LevelId,
        scope: Scope,
        name: &str,
    ) -> Result<AttributeInfo, Failure> {
        let mut info = AttributeInfo {
            scope,
            name: name.to_owned(),
            data_type: "unknown".to_owned(),
            channels: None,
            channel_names: Vec::new(),
            unit: None,
            description: None,
            categories: None,
        };
        let node = self.attribute_node(level, scope, name).await?;
        let spec = self.attribute_spec(scope, name, node.as_ref().map(|(_, node)| node));
        let text = |member: &str| spec.get(member).and_then(Json::as_str).map(str::to_owned);
        (info.unit, info.description) = (text("unit"), text("description"));
        match scope {
            Scope::Object | Scope::Group => {
                let none: Option<&[u64]> = Some(&[]);
                let catalog = self.catalog();
                let column = if scope == Scope::Object {
                    catalog.object_values(level, name, none).await?
                } else {
                    catalog.group_values(level, name, none).await?
                };
                match &column.values {
                    ColumnValues::Numeric(numbers) => {
                        numbers.kind.name().clone_into(&mut info.data_type);
                        info.channels = Some(numbers.width.into());
                    }
                    ColumnValues::Dictionary { .. } => {
                        "text".clone_into(&mut info.data_type);
                        info.channels = Some(1);
                    }
                }
            }
            _ => {
                let Some((key, node)) = &node else {
                    return Ok(info);
                };
                let declared = CellAttribute::parse(key, node.attributes())?.value;
                let is_declared = declared.row_shape.is_some() || declared.channel_names.is_some();
                info.channels = match declared.shape.as_deref() {
                    _ if is_declared => declared.declared_columns(),
                    Some([_, columns]) => Some(*columns),
                    // Since 0.9 writers declare the shape of every row.
                    _ if self.detection().generation.is_current() => Some(1),
                    _ => None,
                };
                declared.dtype.kind().name().clone_into(&mut info.data_type);
                info.channel_names = declared.channel_names.unwrap_or_default();
                if let Some(dictionary) = declared.dictionary {
                    let is_text = dictionary.categories.iter().all(Json::is_string);
                    if is_text {
                        "text".clone_into(&mut info.data_type);
                    }
                    info.categories = u64::try_from(dictionary.categories.len()).ok();
                }
            }
        }
        Ok(info)
    }

    /// Returns the declarations of attributes of a level: units, descriptions, names of channels, and
    /// what else the root declares of them. Takes a round trip for the metadata, unless the root has
    /// a copy of them.
    ///
    /// # Errors
    ///
    /// Returns [`Error`] if the metadata cannot be read.
    pub async fn attribute_specs(
        &self,
        level: LevelId,
        attributes: &[(Scope, String)],
    ) -> Result<AttributeDeclarations, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                let nodes = attributes
                    .iter()
                    .map(|(scope, name)| dataset.attribute_node(level, *scope, name));
                let nodes = try_join_all(nodes).await?;
                let mut specs = AttributeDeclarations::new();
                for ((scope, name), node) in attributes.iter().zip(nodes) {
                    let node = node.as_ref().map(|(_, node)| node);
                    let spec = dataset.attribute_spec(*scope, name, node);
                    if !spec.is_empty() {
                        let of_scope = specs.entry(scope.name().to_owned()).or_default();
                        of_scope.insert(name.clone(), spec);
                    }
                }
                Ok(specs)
            })
        }))
        .await
    }

    /// Returns the declaration of an attribute in the root, with that of its node.
    fn attribute_spec(&self, scope: Scope, name: &str, node: Option<&Node>) -> Attributes {
        let specs = self.root().attribute_specs.as_ref();
        let of_scope = specs.and_then(|specs| specs.get(scope.name()));
        let of_name = of_scope.and_then(|of| of.get(&*stored_name(name)).or_else(|| of.get(name)));
        let of_root = of_name.and_then(Json::as_object);
        let mut spec = of_root.cloned().unwrap_or_default();
        let members = [
            ("unit", ["unit", "units"]),
            ("description", ["description", "long_name"]),
        ];
        for (member, spellings) in members {
            let declared = node.into_iter().map(Node::attributes).chain(of_root);
            let mut texts = declared
                .flat_map(|at| spellings.map(|spelling| at.get(spelling)))
                .flatten()
                .filter(|text| text.is_string())
                .cloned();
            if let Some(text) = texts.next() {
                spec.insert(member.to_owned(), text);
            }
        }
        let names = node.and_then(|node| node.attributes().get("channel_names")?.as_array());
        let mut numbered = names.into_iter().flatten().zip(0_usize..);
        if let Some(names) = names
            && numbered.any(|(name, at)| *name != format!("ch{at}"))
        {
            spec.insert("channel_names".to_owned(), names.clone().into());
        }
        spec
    }

    /// Returns the node that declares the type of an attribute; `None` if there is none.
    async fn attribute_node(
        &self,
        level: LevelId,
        scope: Scope,
        name: &str,
    ) -> Result<Option<(Key, Node)>, Failure> {
        let mut parts = vec![scope.array(name)];
        if scope == Scope::Link {
            parts.push(ArrayRole::CrossChunkLinkAttribute(name, Delta::INTRA));
        }
        for part in parts {
            let layout = self.layout();
            let foreign = (stored_name(name) != name)
                .then(|| layout.foreign_attribute_at(level, &part).ok().flatten());
            let own = nodes::named(layout.described_at(level, &part), name)?;
            let mut found = None;
            for key in own.into_iter().chain(foreign.flatten()) {
                if let Some(node) = nodes::read_one(self.store(), &key).await? {
                    found = Some((key, node));
                    break;
                }
            }
            let Some((key, node)) = found else {
                continue;
            };
            if scope != Scope::Link || node.attributes().contains_key("dtype") {
                return Ok(Some((key, node)));
            }
            // Since 0.9 the family of a link attribute declares no type; its arrays do.
            for child in nodes::children(self.store(), &key).await?.folders {
                let key = nodes::child(&key, &child)?;
                if let Some(node) = nodes::read_one(self.store(), &key).await? {
                    return Ok(Some((key, node)));
                }
            }
        }
        Ok(None)
    }

    /// Computes the range of the values of these attributes, in their order. Reads all values of
    /// the level, a batch at a time, and those of coarser levels that complete it.
    ///
    /// # Errors
    ///
    /// Returns [`Error`] if values cannot be read, or the values of an object attribute exceed the
    /// memory budget.
    pub async fn attribute_ranges(
        &self,
        level: LevelId,
        attributes: &[AttributeInfo],
    ) -> Result<Vec<ValueRange>, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                let mut ranges = vec![ValueRange::default(); attributes.len()];
                // Additive levels repeat the tables of objects.
                let repeats = dataset.level_metadata(level).await?.is_additive();
                let (catalog, session) = (dataset.catalog(), dataset.session());
                for part in session.completed_by(level).await? {
                    if part == level {
                        dataset
                            .add_ranges(level, attributes, |_| true, &mut ranges)
                            .await?;
                        continue;
                    }
                    // A coarser level may lack attributes.
                    let names = Scope::ALL.map(|scope| catalog.attribute_list(part, scope));
                    let names = try_join_all(names).await?;
                    let has = |info: &AttributeInfo| {
                        let mut scopes = Scope::ALL.iter().zip(&names);
                        info.scope != Scope::Group
                            && !(repeats && info.scope == Scope::Object)
                            && scopes.any(|(scope, names)| {
                                *scope == info.scope && names.contains(&info.name)
                            })
                    };
                    dataset
                        .add_ranges(part, attributes, has, &mut ranges)
                        .await?;
                }
                Ok(ranges)
            })
        }))
        .await
    }

    /// Extends the ranges of the attributes that a level has to the values that the level stores.
    async fn add_ranges(
        &self,
        level: LevelId,
        attributes: &[AttributeInfo],
        has: impl Fn(&AttributeInfo) -> bool,
        ranges: &mut [ValueRange],
    ) -> Result<(), Failure> {
        let in_cells = |info: &&AttributeInfo| info.scope.is_in_cells() && has(info);
        let named: Vec<_> = attributes
            .iter()
            .filter(in_cells)
            .map(|info| (Some(info.scope), info.name.clone()))
            .collect();
        if !named.is_empty() {
            let query = Query::new()
                .level(LevelChoice::Number(level))
                .own_level(true)
                .columns(Selection::Named(named));
            let mut add = |batch: QueryResult| {
                for (info, range) in attributes.iter().zip(ranges.iter_mut()) {
                    let mut columns = batch.columns(info.scope).iter();
                    let column = columns.find(|column| column.name == info.name);
                    if let Some(column) = column.filter(|_| info.scope.is_in_cells()) {
                        range.add(column);
                    }
                }
                ControlFlow::Continue(())
            };
            self.verify().await?;
            self.session().batches(&query, &mut add).await?;
        }
        let catalog = self.catalog();
        for (info, range) in attributes.iter().zip(ranges).filter(|(info, _)| has(info)) {
            match info.scope {
                Scope::Object => {
                    range.add(&catalog.object_values(level, &info.name, None).await?);
                }
                Scope::Group => {
                    range.add(&catalog.group_values(level, &info.name, None).await?);
                }
                Scope::Vertex | Scope::Fragment | Scope::Link => {}
            }
        }
        Ok(())
    }

    /// Counts the links of a level that a query returns: stored links, and links that the order of
    /// rows implies; `None` for points and paths. Reads fragments and links.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if they cannot be read.
    pub async fn count_links(&self, level: LevelId) -> Result<Option<u64>, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                let query = Query::new()
                    .level(LevelChoice::Number(level))
                    .columns(Selection::none());
                dataset.verify().await?;
                Ok(dataset.session().count(&query).await?.links)
            })
        }))
        .await
    }

    /// Returns the formats of the files that the store was converted from, as its headers name
    /// them. Takes a listing.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if they cannot be read.
    pub async fn source_formats(&self) -> Result<Vec<String>, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                match dataset.catalog().headers().await {
                    Ok(headers) => Ok(headers.into_iter().map(|header| header.format).collect()),
                    Err(CatalogError::Fetch(error))
                        if error.problem == FetchProblem::Unlistable =>
                    {
                        Ok(Vec::new())
                    }
                    Err(error) => Err(error.into()),
                }
            })
        }))
        .await
    }
}
