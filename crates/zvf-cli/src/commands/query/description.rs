//! Description of a store for the file of a query result: metadata, groups and headers.

use std::collections::BTreeSet;

use zvf::{
    AxisSpec, ColumnValues, Dataset, GeometryKind, LevelId, ObjectGroup, Query, QueryResult, Scope,
    Selection, Word,
};
use zvf_catalog::{CatalogError, GroupList};
use zvf_files::{FileFormat, StoreDescription};

use crate::display::{count_noun, len_u64};

/// Maximum number of groups written.
const MAX_GROUPS: u64 = 1 << 20;

/// A description, and the data that it lacks.
#[derive(Debug)]
pub struct ResultDescription {
    /// Everything of the store that is not a row of the result.
    pub description: StoreDescription,
    /// Data of the store that the file does not hold, one line each.
    pub left_out: Vec<String>,
    /// Consequences of the selection, one line each.
    pub notes: Vec<String>,
    /// True if damaged tables are left out.
    keep_going: bool,
}

impl ResultDescription {
    /// Creates a description from the root of a store.
    pub(super) fn new(dataset: &Dataset, query: &Query) -> Self {
        let root = dataset.root();
        let mut description = StoreDescription::new(geometry(query, dataset));
        let axes = root.axes.iter().map(|axis| {
            let kind = axis.kind.as_deref().unwrap_or("space");
            let mut described = AxisSpec::new(&axis.name).kind(kind);
            described.unit.clone_from(&axis.unit);
            described
        });
        description.axes = axes.collect();
        let winding = root.winding_order.as_ref();
        description.winding = winding.and_then(Word::known);
        description.bounds.clone_from(&root.bounds);
        description.crs = root.crs.clone().filter(|crs| !crs.is_null());
        let name = root.other.get("ome").and_then(|ome| ome.get("name"));
        let name = name.and_then(|name| name.as_str());
        // Stores without a name of their own have the name of the format.
        let name = name.filter(|name| *name != "zarr_vectors");
        description.name = name.map(str::to_owned);
        Self {
            description,
            left_out: Vec::new(),
            notes: Vec::new(),
            keep_going: query.keep_going,
        }
    }

    /// Creates the description of a result: of the root, of attributes, and of headers. The groups
    /// of its objects are added to the result.
    ///
    /// # Errors
    ///
    /// [`zvf::Error`] if the metadata or the table of groups are damaged.
    pub async fn read(
        dataset: &Dataset,
        query: &Query,
        result: &mut QueryResult,
    ) -> Result<Self, zvf::Error> {
        let mut described = Self::new(dataset, query);
        if query.geometry.is_none() {
            described.read_groups(dataset, result).await?;
            described.read_attributes(dataset, result).await?;
            described.read_headers(dataset).await?;
            described.read_direction(dataset, result.level).await?;
        }
        Ok(described)
    }

    /// Lists a table that cannot be read as left out, if the query may lack damaged data.
    fn leave_out(&mut self, table: &str, error: zvf::Error) -> Result<(), zvf::Error> {
        if !self.keep_going {
            return Err(error);
        }
        self.left_out.push(format!("{table}: {error}"));
        Ok(())
    }

    /// Adds the groups of the objects in a result and their attributes. Members that are not in
    /// the result are left out, because the file does not hold them. The groups of a query for groups
    /// stay, also without members.
    ///
    /// # Errors
    ///
    /// [`zvf::Error`] if a table is damaged.
    pub(super) async fn read_groups(
        &mut self,
        dataset: &Dataset,
        result: &mut QueryResult,
    ) -> Result<(), zvf::Error> {
        if result.objects.is_empty() {
            return Ok(());
        }
        match self.try_read_groups(dataset, result).await {
            Ok(()) => Ok(()),
            Err(error) => self.leave_out("groups", error.into()),
        }
    }

    /// Lists the groups as left out by a format that has no place for them. Those of a query for
    /// groups are listed by the writer.
    ///
    /// # Errors
    ///
    /// [`zvf::Error`] if a table is damaged.
    pub(super) async fn list_groups(
        &mut self,
        dataset: &Dataset,
        result: &QueryResult,
        format: FileFormat,
    ) -> Result<(), zvf::Error> {
        if result.objects.is_empty() || !result.groups.is_empty() {
            return Ok(());
        }
        match dataset.catalog().group_list(result.level).await {
            Ok(Some(groups)) if !groups.is_empty() => {
                self.left_out
                    .push(format!("groups: not supported by {format}"));
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => self.leave_out("groups", error.into()),
        }
    }

    async fn try_read_groups(
        &mut self,
        dataset: &Dataset,
        result: &mut QueryResult,
    ) -> Result<(), CatalogError> {
        let catalog = dataset.catalog();
        let level = result.level;
        let Some(groups) = catalog.group_list(level).await? else {
            return Ok(());
        };
        for name in catalog.attribute_list(level, Scope::Group).await?.iter() {
            let column = catalog.group_values(level, name, None).await?;
            self.description.group.push(column);
        }
        self.add_groups(&groups, result);
        Ok(())
    }

    /// Returns whether an attribute of groups has a value for a group.
    fn has_attributes(&self, group: u64) -> bool {
        let row = usize::try_from(group).unwrap_or(usize::MAX);
        let mut columns = self.description.group.iter();
        columns.any(|column| match &column.values {
            // A group without a value has NaN, where the type has it.
            ColumnValues::Numeric(numbers) => {
                let value = numbers.view().and_then(|view| view.value(row, 0));
                let is_nan = value.is_some_and(|value| value.to_f64().is_nan());
                value.is_some() && !is_nan && !column.is_null(row)
            }
            ColumnValues::Dictionary { .. } => column.text_at(row).is_some(),
        })
    }

    fn add_groups(&mut self, groups: &GroupList, result: &mut QueryResult) {
        let selected: BTreeSet<i64> = result.objects.iter().copied().collect();
        // The number of groups comes from the store and may be absurd.
        let count = groups.len().min(MAX_GROUPS);
        if groups.len() > count {
            let rest = count_noun(groups.len() - count, "group", "groups");
            self.left_out
                .push(format!("{rest}: more than {MAX_GROUPS} groups"));
        }
        let requested: BTreeSet<u64> = result.groups.drain(..).map(|group| group.id).collect();
        let mut outside = 0_u64;
        for id in 0..count {
            let Some(group) = groups.members(id) else {
                continue;
            };
            let members: Vec<i64> = match group.as_range() {
                Some(range) => selected.range(range).copied().collect(),
                None => {
                    let members = group.iter();
                    members.filter(|member| selected.contains(member)).collect()
                }
            };
            outside = outside.saturating_add(group.len().saturating_sub(len_u64(members.len())));
            // An unused number is a group without members, too, but it has no attributes.
            let is_named = group.is_empty() && self.has_attributes(id);
            if !members.is_empty() || is_named || requested.contains(&id) {
                result.groups.push(ObjectGroup { id, members });
            }
        }
        self.note_members(outside);
    }

    fn note_members(&mut self, outside: u64) {
        if outside > 0 {
            let members = count_noun(outside, "member", "members");
            self.notes.push(format!(
                "{members} of groups left out: not in the selection"
            ));
        }
    }

    /// Adds units, descriptions and channel names of the attributes that the file holds.
    ///
    /// # Errors
    ///
    /// [`zvf::Error`] if the metadata are damaged.
    pub(super) async fn read_attributes(
        &mut self,
        dataset: &Dataset,
        result: &QueryResult,
    ) -> Result<(), zvf::Error> {
        let names: Vec<(Scope, String)> = Scope::ALL
            .into_iter()
            .flat_map(|scope| {
                let columns = match scope {
                    Scope::Group => &self.description.group,
                    Scope::Vertex | Scope::Fragment | Scope::Link | Scope::Object => {
                        result.columns(scope)
                    }
                };
                let names = columns.iter().map(|column| column.name.clone());
                names.map(move |name| (scope, name))
            })
            .collect();
        self.read_specs(dataset, result.level, &names).await
    }

    /// Adds units, descriptions and channel names of the attributes that a query of a level selects.
    ///
    /// # Errors
    ///
    /// [`zvf::Error`] if the metadata are damaged or the level cannot be listed.
    pub(super) async fn read_selected(
        &mut self,
        dataset: &Dataset,
        query: &Query,
        level: LevelId,
    ) -> Result<(), zvf::Error> {
        let catalog = dataset.catalog();
        let mut names = Vec::new();
        for scope in Scope::ALL {
            let is_listed = match (scope, &query.columns) {
                // A table of groups that is damaged is reported when it is read.
                (Scope::Group, _) => matches!(catalog.group_list(level).await, Ok(Some(_))),
                (_, Selection::All) => true,
                (_, Selection::Named(named)) => {
                    let mut own = named.clone();
                    own.retain(|(of, _)| of.is_none_or(|of| of == scope));
                    names.extend(own.into_iter().map(|(_, name)| (scope, name)));
                    false
                }
            };
            if !is_listed {
                continue;
            }
            match catalog.attribute_list(level, scope).await {
                Ok(listed) => names.extend(listed.iter().map(|name| (scope, name.clone()))),
                Err(error) => self.leave_out("units of attributes", error.into())?,
            }
        }
        self.read_specs(dataset, level, &names).await
    }

    async fn read_specs(
        &mut self,
        dataset: &Dataset,
        level: LevelId,
        names: &[(Scope, String)],
    ) -> Result<(), zvf::Error> {
        match dataset.attribute_specs(level, names).await {
            Ok(specs) => {
                self.description.attributes = specs;
                Ok(())
            }
            Err(error) => self.leave_out("units of attributes", error),
        }
    }

    /// Adds whether the edges of a graph have a direction.
    ///
    /// # Errors
    ///
    /// [`zvf::Error`] if the metadata are damaged.
    pub(super) async fn read_direction(
        &mut self,
        dataset: &Dataset,
        level: LevelId,
    ) -> Result<(), zvf::Error> {
        if dataset.root().first_kind() != Some(GeometryKind::Graphs) {
            return Ok(());
        }
        match dataset.catalog().has_directed_links(level).await {
            Ok(directed) => {
                self.description.directed = directed;
                Ok(())
            }
            Err(error) => self.leave_out("direction of links", error.into()),
        }
    }

    /// Adds the headers of source files.
    ///
    /// # Errors
    ///
    /// [`zvf::Error`] if the metadata are damaged.
    pub(super) async fn read_headers(&mut self, dataset: &Dataset) -> Result<(), zvf::Error> {
        match dataset.catalog().headers().await {
            Ok(headers) => {
                let headers = headers
                    .into_iter()
                    .map(|header| (header.format, header.attributes));
                self.description.headers = headers.collect();
                Ok(())
            }
            Err(error) => self.leave_out("headers", error.into()),
        }
    }
}

/// Returns the kind of geometry, or the name of the selected one.
fn geometry(query: &Query, dataset: &Dataset) -> String {
    if let Some(name) = &query.geometry {
        return name.clone();
    }
    let kinds: Vec<&str> = dataset
        .root()
        .geometry_kinds
        .iter()
        .map(Word::as_str)
        .collect();
    kinds.join(",")
}
