//! Geometry of a file, to be added to an existing store.

use std::{error::Error, sync::Arc};

use zvf::{PlanCheck, Query};
use zvf_files::{FileFormat, GeometryInput, InputFile, RowIdPolicy};

use super::{EditTargetArgs, match_space, match_types, session::EditSession};
use crate::{
    arguments::GeometryReadingArgs,
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
    /// Write even very many small files, which geometry of a larger scale than the store needs.
    #[arg(long, help_heading = "Execution")]
    yes: bool,
}

/// A file that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdditionError {
    #[error(
        "{0} does not name its kind of geometry, so no file can be read for it; run zvf validate"
    )]
    NoKind(String),
    #[error("the file calls a group {0:?}; use the numbers of the store's groups")]
    GroupName(String),
}

impl AdditionArgs {
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
        let root = opened.dataset.root();
        let kind = root
            .first_kind()
            .ok_or_else(|| AdditionError::NoKind(work.store.clone()))?;
        let axes: Vec<String> = match self.axes.as_slice() {
            [] => root.axes.iter().map(|axis| axis.name.clone()).collect(),
            given => given.to_vec(),
        };
        let name = from.path().display().to_string();
        let progress = ProgressLine::with_message(work.quiet, move || format!("reading {name}"));
        let mut reading = self.options.reading(kind, Some(axes.clone()));
        reading.row_ids = row_ids;
        let mut input = zvf_files::read(from, &reading)?;
        if let Some(name) = input.group_names.values().next() {
            return Err(AdditionError::GroupName(name.clone()).into());
        }
        match_space::to(root, &axes, from.format(), &mut input);
        if from.format() == FileFormat::Csv {
            // One row suffices to learn the type of every column.
            let like = opened.dataset.query(&Query::new().limit(1)).await?;
            match_types::to(&like, &mut input.geometry);
        }
        drop(progress);
        Ok(input)
    }
}
