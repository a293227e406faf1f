//! Geometry of a file, to be added to an existing store.

use std::{error::Error, sync::Arc};

use zvf::{PlanCheck, Query};
use zvf_files::{
    AxisUnitError, FileFormat, GeometryInput, InputFile, RowIdPolicy, match_space, other_system,
};

use super::{EditTargetArgs, match_types, session::EditSession};
use crate::{
    arguments::{GeometryReadingArgs, name_of, named, values},
    many_files::{ManyFilesError, PlanTarget},
    progress::ProgressLine,
};

/// The file to add, and how to read it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AdditionArgs {
    #[command(flatten)]
    pub(crate) options: GeometryReadingArgs,
    /// Axes of the file in the order of the store's axes; by default those with the same names.
    #[arg(
        long,
        value_name = "NAME,NAME",
        help_heading = "Space",
        value_delimiter = ','
    )]
    axes: Vec<String>,
    /// Unit of the coordinates of a file that does not state it; by default that of the store.
    #[arg(long, value_name = "UNIT", help_heading = "Space", value_parser = values::unit)]
    unit: Option<String>,
    /// Ids of added objects: those of the file, or the next free ones.
    ///
    /// By default `new` for files without ids, such as .trk, .tck, .trx, and .swc files and meshes whose
    /// names are not different numbers, and `keep` for others.
    #[arg(long, value_name = "IDS", help_heading = "Selection",
        value_parser = named(IDS.map(|(ids, _)| ids), ids_name))]
    ids: Option<AddedIds>,
    /// Add coordinates of another reference system as they are.
    #[arg(long, help_heading = "Space")]
    assume_crs: bool,
    /// Write even very many small files, which geometry of a larger scale than the store needs.
    #[arg(long, help_heading = "Execution")]
    yes: bool,
}

/// Ids of added objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddedIds {
    /// Keep the ids of the file.
    Keep,
    /// Use the next free ids of the store.
    New,
}

const IDS: [(AddedIds, &str); 2] = [(AddedIds::Keep, "keep"), (AddedIds::New, "new")];

fn ids_name(ids: AddedIds) -> &'static str {
    name_of(&IDS, ids)
}

/// A file that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdditionError {
    #[error(
        "the coordinates of the file are in {file}, and those of the store in {store}; transform the \
         file first, for example with pdal or ogr2ogr, or add --assume-crs if they are the same"
    )]
    Crs { file: String, store: String },
    #[error(transparent)]
    Unit(#[from] AxisUnitError),
}

impl AdditionArgs {
    /// Returns whether objects of a file get the next free ids.
    pub(crate) fn renumbers(&self, input: &GeometryInput) -> bool {
        self.ids
            .map_or(input.numbers_objects, |ids| ids == AddedIds::New)
    }

    /// Returns the check of the size of the addition.
    pub(crate) fn check(&self) -> PlanCheck {
        let is_confirmed = self.yes;
        Arc::new(move |estimate| {
            let error = ManyFilesError::of(estimate, PlanTarget::Addition);
            match error.filter(|_| !is_confirmed) {
                Some(error) => Err(error.into()),
                None => Ok(()),
            }
        })
    }

    /// Reads the file as geometry of the store's kind.
    pub(crate) async fn read(
        &self,
        from: &InputFile,
        work: &EditTargetArgs,
        opened: &EditSession,
        row_ids: RowIdPolicy,
    ) -> Result<GeometryInput, Box<dyn Error>> {
        let kind = opened.kind()?;
        let name = from.path().display().to_string();
        let progress = ProgressLine::with_message(work.quiet, move || format!("reading {name}"));
        let mut reading = self.options.reading(kind, Some(self.axes(opened)));
        reading.row_ids = row_ids;
        let mut input = zvf_files::read(from, &reading)?;
        self.fit(opened, Some(from.format()), &mut input)?;
        if from.format() == FileFormat::Csv {
            // One row suffices to learn the type of every column.
            let like = opened.dataset.query(&Query::new().limit(1)).await?;
            match_types::to(&like, &mut input.geometry);
        }
        drop(progress);
        Ok(input)
    }

    /// Brings coordinates into the space of the store. `format` is that of a file.
    pub(crate) fn fit(
        &self,
        opened: &EditSession,
        format: Option<FileFormat>,
        input: &mut GeometryInput,
    ) -> Result<(), AdditionError> {
        let root = opened.dataset.root();
        let axes = self.axes(opened);
        match_space(root, &axes, format, self.unit.as_deref(), input)?;
        match other_system(root, input) {
            Some((file, store)) if !self.assume_crs => Err(AdditionError::Crs { file, store }),
            _ => Ok(()),
        }
    }

    /// Returns the axes of the file in the order of the store's axes.
    fn axes(&self, opened: &EditSession) -> Vec<String> {
        match self.axes.as_slice() {
            [] => {
                let axes = opened.dataset.root().axes.iter();
                axes.map(|axis| axis.name.clone()).collect()
            }
            given => given.to_vec(),
        }
    }
}
