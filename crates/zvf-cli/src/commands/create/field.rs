//! `zvf create` from files of `zvf-files`, which determine kind, axes and headers.

use std::error::Error;

use zvf::{Design, GeometryKind};
use zvf_files::{
    FileError, FileFault, FileFormat, FileReadOptions, GeometryReader, input_of, open_field,
};

use super::{CreateArgs, CreateOutput, CreateUsageError, create_large, create_whole};
use crate::{outcome::CommandOutcome, progress::ProgressLine};

/// Opens a file to be read in batches, and designs its store.
pub(super) fn open(
    arguments: &CreateArgs,
) -> Result<(Design, Box<dyn GeometryReader>), Box<dyn Error>> {
    let file = arguments.input.file()?;
    if let Some(option) = arguments.input.options.table_option() {
        let format = file.format();
        return Err(CreateUsageError::Table { option, format }.into());
    }
    let reader = open_field(&file, reading(arguments, file.format()))?;
    let kind = arguments.kind.unwrap_or(reader.description().kind);
    let mut design = arguments.design(kind)?;
    let description = reader.description();
    description.complete(&mut design);
    arguments.settle_axes(&mut design, None, &description.axes)?;
    Ok((design, reader))
}

pub(super) async fn run(arguments: &CreateArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let file = arguments.input.file()?;
    if let Some(option) = arguments.input.options.table_option() {
        let format = file.format();
        return Err(CreateUsageError::Table { option, format }.into());
    }
    if !file.format().takes_further_files() && !arguments.with.is_empty() {
        return Err(CreateUsageError::With(file.format()).into());
    }
    let name = file.path().display().to_string();
    let progress = ProgressLine::with_message(arguments.quiet, move || format!("reading {name}"));
    let mut reader = open_field(&file, reading(arguments, file.format()))?;
    let description = reader.description().clone();
    let kind = arguments.kind.unwrap_or(description.kind);
    let mut design = arguments.design(kind)?;
    let mut files = vec![file.path().to_path_buf()];
    files.extend(arguments.with.iter().cloned());
    if is_streamed(arguments, reader.as_ref(), kind) {
        drop(progress);
        description.complete(&mut design);
        arguments.settle_axes(&mut design, None, &description.axes)?;
        let mut report = CreateOutput::new(&arguments.out, kind);
        let files = files.iter().map(|file| file.display().to_string());
        report.read_files(files.collect(), &description.notes);
        let size = description.bytes;
        return create_large(arguments, design, reader.as_mut(), size, report).await;
    }
    let geometry = zvf_files::read_whole(reader.as_mut()).map_err(FileError::of_batch)?;
    drop(progress);
    if geometry.vertices() == 0 {
        return Err(FileFault::Empty.of(file.path()).into());
    }
    // Some notes come with the last batch.
    let input = input_of(reader.description(), geometry.into_builder(), files);
    create_whole(arguments, design, input).await
}

/// Returns the options for reading a file. If its format is read as a whole, `--memory` limits the
/// bytes to which the file unpacks.
fn reading(arguments: &CreateArgs, format: FileFormat) -> FileReadOptions {
    use FileFormat::{EdgeList, FreeSurfer, Geff, GeoParquet, Gii, GraphMl, Obj, Stl};

    let mut options = arguments.field_reading();
    if let (Some(memory), Gii | FreeSurfer | Obj | Stl | GraphMl | EdgeList | Geff | GeoParquet) =
        (arguments.memory(), format)
    {
        options.unpacked = memory;
    }
    options
}

/// Returns whether a file is read in batches, because it is large or shared among processes.
fn is_streamed(arguments: &CreateArgs, reader: &dyn GeometryReader, kind: GeometryKind) -> bool {
    let options = arguments.options();
    let is_large = reader.description().bytes > arguments.whole_size();
    let is_shared = options.workers.is_some() && !kind.is_linked();
    let is_divided = is_large && !arguments.is_padded() && !(kind.is_linked() && reader.is_whole());
    (is_divided || is_shared) && !options.overwrite
}
