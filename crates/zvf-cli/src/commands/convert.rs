//! `zvf convert`: writes a file of geometry in another format, without a store.

use std::{error::Error, path::PathBuf};

use serde_json::json;
use zvf::GeometryKind;
use zvf_files::{
    AttributeRename, FileError, FileReadOptions, FileResults, GeometryReadOptions, InputFile,
    InputFileError, LosslessTarget, MissingPolicy, OutputFile, OutputFileError, ResultSink,
    ResultTables, StoreDescription, WrittenFiles,
};

use crate::{
    arguments::{GAPS, gaps_name, named, rename},
    commands::create::{CreateUsageError, table_kind},
    dense::reference_grid,
    display::{count_noun, len_u64},
    outcome::CommandOutcome,
    progress::ProgressLine,
    stop,
};

/// Convert a file of geometry to another format
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "zvf convert [OPTIONS] <IN>... <OUT>",
    after_help = "Files are read and written in batches where both formats allow it. Formats are those of `zvf create
--from` and `zvf query -o`.

Examples:
  zvf convert tracts.trk tracts.tck
  zvf convert neurons/ neurons.glb
  zvf convert cloud.csv cloud.laz --kind points --strict"
)]
pub(crate) struct FileConvertArgs {
    /// File to read, or a folder of .swc files, of a geff graph or of precomputed data, and the file to
    /// write. Several .swc files are read together. An existing file is replaced, with the tables
    /// beside it.
    // One list, because options may stand between the files.
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<String>,
    /// Kind of the geometry; taken from the file if it has one.
    #[arg(long, value_parser = named(GeometryKind::ALL, GeometryKind::name))]
    kind: Option<GeometryKind>,
    /// Columns of a table that are the axes; x, y, z and w unless given.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    axes: Vec<String>,
    /// New name for an attribute, such as 'Curvature (mm)=curvature'; may be repeated.
    #[arg(long, value_name = "OLD=NEW", value_parser = rename)]
    rename: Vec<AttributeRename>,
    /// Treatment of missing numbers of tables and npz files: refuse the file, or write NaN, which turns
    /// integers into floats.
    #[arg(long, default_value = "refuse", value_parser = named(GAPS.map(|(gaps, _)| gaps), gaps_name))]
    missing: MissingPolicy,
    /// File that belongs to the one that is read; may be repeated.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// NIfTI image in whose voxel grid a .trk or .trx file is written; by default that of the file that is
    /// read.
    #[arg(long, value_name = "IMAGE")]
    reference: Option<PathBuf>,
    /// Write no file if its format cannot hold everything.
    #[arg(long)]
    strict: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress, and print nothing but warnings and errors.
    #[arg(long)]
    quiet: bool,
}

/// Files that cannot be converted.
#[derive(Debug, thiserror::Error)]
enum ConvertUsageError {
    #[error("no file to write; give the file to read and the file to write, as in a.trk b.tck")]
    NoTarget,
    #[error("{path}: {source}")]
    Input {
        path: String,
        source: InputFileError,
    },
    #[error("{path}: {source}")]
    Output {
        path: String,
        source: OutputFileError,
    },
}

/// Number of vertices of a batch.
const BATCH: usize = 1 << 18;

/// A finished conversion.
struct Conversion {
    vertices: u64,
    notes: Vec<String>,
    written: WrittenFiles,
}

pub(crate) fn run(arguments: &FileConvertArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let (input, target) = arguments.files()?;
    let grid = arguments.reference.as_deref().map(reference_grid);
    let target = target.in_grid(grid.transpose()?)?;
    let format = input.format();
    if !format.is_interchange() && !arguments.axes.is_empty() {
        let option = "--axes";
        return Err(CreateUsageError::Table { option, format }.into());
    }
    let (from, to) = (input.path().display(), target.path().display());
    let message = format!("converting {from} to {to}");
    let progress =
        ProgressLine::with_message(arguments.quiet || arguments.json, move || message.clone());
    let lossless = LosslessTarget::new(&target, arguments.strict)?;
    let is_streamed = !input.format().is_interchange()
        && target.format().is_in_batches()
        && target.of_objects().is_none();
    let mut converted = if is_streamed {
        in_batches(arguments, &input, lossless.file())?
    } else {
        whole(arguments, &input, lossless.file())?
    };
    // Content that the reader left out is lost as well.
    let lost = converted
        .notes
        .iter()
        .filter(|note| note.contains("left out"))
        .map(|note| note.strip_prefix("left out: ").unwrap_or(note).to_owned());
    converted.written.left_out.extend(lost);
    converted.notes.retain(|note| !note.contains("left out"));
    converted.notes.append(&mut converted.written.notes);
    converted.written = lossless.publish(converted.written)?;
    drop(progress);
    Ok(arguments.done(&converted)?)
}

/// Converts batch by batch.
fn in_batches(
    arguments: &FileConvertArgs,
    input: &InputFile,
    target: &OutputFile,
) -> Result<Conversion, Box<dyn Error>> {
    let mut reader = zvf_files::open_field(input, arguments.reading())?;
    let mut sink = ResultSink::create(target, &StoreDescription::from(reader.description()))?;
    let mut batches = FileResults::new(reader.as_mut()).map_err(FileError::of_batch)?;
    let has_whole_objects = batches.has_whole_objects();
    let mut vertices = 0_u64;
    while let Some(batch) = batches.next(BATCH).map_err(FileError::of_batch)? {
        stop::check()?;
        vertices = vertices.saturating_add(len_u64(batch.positions.len()));
        sink.write(&batch)?;
        if has_whole_objects {
            sink.end_objects()?;
        }
    }
    let tables = batches.groups();
    Ok(Conversion {
        vertices,
        notes: batches.description().notes.clone(),
        written: sink.finish(&ResultTables {
            groups: &tables.groups,
            group: &tables.columns,
            ..ResultTables::default()
        })?,
    })
}

/// Converts to a format that is written as a whole, or from a table.
fn whole(
    arguments: &FileConvertArgs,
    file: &InputFile,
    target: &OutputFile,
) -> Result<Conversion, Box<dyn Error>> {
    let format = file.format();
    let input = if format.is_interchange() {
        let kind = table_kind(arguments.kind, file)?;
        if !arguments.with.is_empty() {
            return Err(CreateUsageError::With(format).into());
        }
        let mut reading = GeometryReadOptions::new(kind);
        reading.renames.clone_from(&arguments.rename);
        reading.missing = arguments.missing;
        reading.axes = (!arguments.axes.is_empty()).then(|| arguments.axes.clone());
        let mut input = zvf_files::read(file, &reading)?;
        input.separate_parts()?;
        input
    } else {
        let mut reader = zvf_files::open_field(file, arguments.reading())?;
        let geometry = zvf_files::read_whole(reader.as_mut()).map_err(FileError::of_batch)?;
        zvf_files::input_of(reader.description(), geometry.into_builder(), Vec::new())
    };
    let kind = arguments
        .kind
        .or_else(|| input.description.kind())
        .unwrap_or(GeometryKind::Points);
    let mut description = input.description;
    description.crs = description.crs.or(input.crs);
    description.group.clone_from(&input.geometry.group);
    let axes = input.axes.unwrap_or_default();
    let result = zvf_files::whole_result(input.geometry, kind, axes)?;
    stop::check()?;
    Ok(Conversion {
        vertices: len_u64(result.positions.len()),
        notes: input.notes,
        written: zvf_files::write(&result, &description, target)?,
    })
}

impl FileConvertArgs {
    /// Returns the input, which may be several files, and the file to write.
    fn files(&self) -> Result<(InputFile, OutputFile), ConvertUsageError> {
        let [first, further @ .., target] = self.files.as_slice() else {
            return Err(ConvertUsageError::NoTarget);
        };
        let read = |path: &String| {
            InputFile::parse(path).map_err(|source| {
                let path = path.clone();
                ConvertUsageError::Input { path, source }
            })
        };
        let mut more: Vec<PathBuf> = Vec::new();
        for path in further {
            more.extend(read(path)?.paths());
        }
        let input = read(first)?.and(&more).map_err(|source| {
            let path = first.clone();
            ConvertUsageError::Input { path, source }
        })?;
        let target = OutputFile::parse(target).map_err(|source| {
            let path = target.clone();
            ConvertUsageError::Output { path, source }
        })?;
        Ok((input, target))
    }

    /// Returns the options for reading a file of `zvf-files`.
    fn reading(&self) -> FileReadOptions {
        let mut options = FileReadOptions::default();
        options.kind = self.kind;
        options.with.clone_from(&self.with);
        options.renames.clone_from(&self.rename);
        options.nan_for_missing = self.missing == MissingPolicy::Nan;
        options
    }

    fn done(&self, converted: &Conversion) -> Result<CommandOutcome, serde_json::Error> {
        let Conversion {
            vertices,
            notes,
            written,
        } = converted;
        let files: Vec<String> = written
            .files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let lost: Vec<String> = written
            .left_out
            .iter()
            .map(|line| format!("left out: {line}"))
            .collect();
        let mut outcome = CommandOutcome::default();
        if self.json {
            outcome.text = serde_json::to_string_pretty(&json!({
                "vertices": vertices,
                "files": files,
                "notes": notes,
                "left_out": written.left_out,
            }))?;
        } else if self.quiet {
            outcome.warnings = lost;
        } else {
            let mut lines = vec![count_noun(*vertices, "vertex", "vertices")];
            lines.extend(files.iter().map(|file| format!("written: {file}")));
            lines.extend(lost);
            lines.extend(notes.iter().map(|note| format!("note: {note}")));
            outcome.text = lines.join("\n");
        }
        Ok(outcome)
    }
}
