//! The store and the query that a result comes from.

use pyo3::{prelude::*, types::PyDict};
use zvf::{Dataset, GeometryBuilder, GeometryKind, LevelId, ObjectGroup, Query, QueryResult};
use zvf_cli::commands::query::ResultDescription;
use zvf_files::GeometryInput;
use zvf_model::error_chain::error_chain;

use crate::{dataset::PyDataset, engine, errors::exception, query};

/// An open store, the arguments of a query, and the level of its result.
pub(crate) type OriginArguments<'py> = (Bound<'py, PyDataset>, Bound<'py, PyDict>, u32);

/// The store and the query that a result comes from. What a file of the result has beside its rows is
/// read when a store is made of it.
pub(crate) struct Origin {
    dataset: Dataset,
    query: Query,
    level: LevelId,
}

impl Origin {
    /// Takes the origin of a result.
    pub(crate) fn of(given: Option<OriginArguments<'_>>) -> PyResult<Option<Self>> {
        let origin = given.map(|(dataset, query, level)| {
            Ok(Self {
                dataset: dataset.get().current(),
                query: query::query(&query)?,
                level: LevelId::new(level),
            })
        });
        origin.transpose()
    }

    /// Returns the kind of geometry of the store; `None` for an additional geometry, whose kind is
    /// not declared.
    pub(crate) fn kind(&self) -> Option<GeometryKind> {
        let is_own = self.query.geometry.is_none();
        self.dataset.root().first_kind().filter(|_| is_own)
    }

    /// Returns geometry made of the rows of a result with everything that a file of it has.
    pub(crate) fn input(
        &self,
        py: Python<'_>,
        mut geometry: GeometryBuilder,
    ) -> PyResult<GeometryInput> {
        // The description reads ids of objects and names of columns only.
        let groups = std::mem::take(&mut geometry.groups).into_iter();
        let mut result = QueryResult::default();
        result.level = self.level;
        result.objects = geometry.objects.take().unwrap_or_default();
        result.vertex = std::mem::take(&mut geometry.vertex);
        result.fragment = std::mem::take(&mut geometry.fragment);
        result.link = std::mem::take(&mut geometry.link);
        result.object = std::mem::take(&mut geometry.object);
        result.groups = groups
            .map(|(id, members)| ObjectGroup {
                id: id.into(),
                members,
            })
            .collect();
        let reading = ResultDescription::read(&self.dataset, &self.query, &mut result);
        let described = engine::run(py, reading)?;
        let mut description = described.description;
        geometry.objects = Some(result.objects).filter(|objects| !objects.is_empty());
        geometry.vertex = result.vertex;
        geometry.fragment = result.fragment;
        geometry.link = result.link;
        geometry.object = result.object;
        geometry.group = std::mem::take(&mut description.group);
        for group in result.groups {
            // The description has no greater numbers than a geometry may have.
            if let Ok(id) = u32::try_from(group.id) {
                geometry.groups.insert(id, group.members);
            }
        }
        let mut input = GeometryInput::new(geometry, description);
        input.notes = described.notes;
        let left_out = described.left_out.iter();
        input
            .notes
            .extend(left_out.map(|line| format!("left out: {line}")));
        input
            .separate_parts()
            .map_err(|error| exception(py, "InputError", &error_chain(&error), None, None))?;
        Ok(input)
    }
}
