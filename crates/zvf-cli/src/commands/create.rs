//! `zvf create`: writes a file of geometry as a store.

mod arguments;
mod declarations;
mod field;
mod file_axes;
mod output;
mod plan_check;
mod rounding_check;
mod whole_source;
mod write;

use std::error::Error;

use zvf::{Design, GeometryKind, GeometrySource, TaskPlan, TaskPlanOptions};
use zvf_files::{GeometryInput, TableStream, WholeFile};

use crate::{
    display::{count_noun, dropped_note, len_u64},
    hint::{Operation, with_hint},
    outcome::CommandOutcome,
    progress::{ProgressLine, ProgressMeter},
};

use declarations::AttributeNames;
use plan_check::PausableProgress;
use rounding_check::{MeasuredSource, RoundingCheck};
use whole_source::WholeSource;

pub(crate) use arguments::table_kind;
pub use arguments::{CreateArgs, CreateUsageError};
pub use declarations::DeclarationError;
pub use file_axes::AxisOrderError;
pub use output::CreateOutput;
pub(crate) use write::use_threads;
pub use write::{CreateSettings, CreateSettingsError, CreateSummary};

/// Reads a file and writes its geometry as a store.
pub(crate) async fn run(arguments: &CreateArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    if arguments.input.is_field() {
        return field::run(arguments).await;
    }
    if let Some(option) = arguments.field_option() {
        let format = arguments.input.from.format();
        return Err(CreateUsageError::Field { option, format }.into());
    }
    let kind = arguments.table_kind()?;
    let mut design = arguments.design(kind)?;
    if let Some(mut stream) = streamed(arguments, kind)? {
        stream.complete(&mut design);
        arguments.settle_axes(&mut design, stream.axes(), &stream.description().axes)?;
        let mut report = CreateOutput::new(&arguments.out, kind);
        let file = arguments.input.from.path().display().to_string();
        report.read_files(vec![file], stream.notes());
        let size = stream.bytes();
        return create_large(arguments, design, &mut stream, size, report).await;
    }
    let name = arguments.input.from.path().display().to_string();
    let progress = ProgressLine::with_message(arguments.quiet, move || format!("reading {name}"));
    let mut input = zvf_files::read(&arguments.input.from, &arguments.reading(kind))?;
    input.separate_parts()?;
    drop(progress);
    create_whole(arguments, design, input).await
}

/// Writes a store of geometry in memory.
async fn create_whole(
    arguments: &CreateArgs,
    mut design: Design,
    mut input: GeometryInput,
) -> Result<CommandOutcome, Box<dyn Error>> {
    input.complete(&mut design);
    arguments.settle_axes(&mut design, input.axes.as_deref(), &input.description.axes)?;
    let built = std::mem::take(&mut input.geometry).build();
    let geometry = built.map_err(|error| with_hint(Operation::Create, error.into()))?;
    arguments.declare(&mut design, &AttributeNames::of(&geometry))?;
    let out = arguments.out.clone();
    let read = len_u64(geometry.vertices());
    let vertices = count_noun(read, "vertex", "vertices");
    let options = arguments.options();
    options.check(&geometry)?;
    let meter = ProgressMeter::default();
    let what = format!("writing {vertices} to {out}");
    let progress = PausableProgress::start(arguments.plan_check(), what, meter.clone());
    let mut report = CreateOutput::new(&arguments.out, design.kind);
    report.read(&input);
    let mut rounding = RoundingCheck::new(design.dtype);
    rounding.add(geometry.positions());
    let axes = input.axes.unwrap_or_default();
    let options = options.create_options(meter, progress.check())?;
    let created = write::create(&arguments.out, geometry, &design, &options).await?;
    progress.finish();
    report.note(dropped_note(read, created.vertices));
    report.created(created);
    report.warn(rounding.warning(&axes));
    Ok(arguments.done(&report)?)
}

/// Plans the creation of a store by tasks. Returns the plan and warnings.
pub(crate) async fn plan(
    arguments: &CreateArgs,
    tasks: &TaskPlanOptions,
) -> Result<(TaskPlan, Vec<String>), Box<dyn Error>> {
    let options = arguments.options();
    if options.overwrite || options.workers.is_some() {
        return Err(CreateUsageError::Planned.into());
    }
    let (mut design, mut source): (Design, Box<dyn GeometrySource>);
    let (size, names);
    if arguments.input.is_field() {
        let reader;
        (design, reader) = field::open(arguments)?;
        size = reader.description().bytes;
        source = reader;
        names = AttributeNames::of_source(source.as_mut())?;
    } else {
        let kind = arguments.table_kind()?;
        design = arguments.design(kind)?;
        match TableStream::open(&arguments.input.from, &arguments.reading(kind), 0)? {
            Ok(stream) => {
                stream.complete(&mut design);
                arguments.settle_axes(&mut design, stream.axes(), &stream.description().axes)?;
                size = stream.bytes();
                source = Box::new(stream);
                names = AttributeNames::of_source(source.as_mut())?;
            }
            Err(_) if kind.is_linked() => {
                let input = zvf_files::read(&arguments.input.from, &arguments.reading(kind))?;
                let own = &input.description.axes;
                input.complete(&mut design);
                arguments.settle_axes(&mut design, input.axes.as_deref(), own)?;
                size = len_u64(input.geometry.positions.bytes.len());
                let built = input.geometry.build();
                let geometry = built.map_err(|error| with_hint(Operation::Plan, error.into()))?;
                names = AttributeNames::of(&geometry);
                source = Box::new(WholeSource::new(geometry)?);
            }
            Err(reason) => return Err(CreateSettingsError::NotPlanned(reason).into()),
        }
    }
    arguments.declare(&mut design, &names)?;
    let meter = ProgressMeter::default();
    let what = format!("planning {}", arguments.out);
    let progress = PausableProgress::start(arguments.plan_check(), what, meter.clone());
    let options = options.create_options(meter.clone(), progress.check())?;
    let mut rounding = RoundingCheck::new(design.dtype);
    meter.start_reading(size);
    let mut source = MeasuredSource {
        source: source.as_mut(),
        check: &mut rounding,
        is_measured: false,
        vertices: 0,
        meter,
        size,
    };
    let planned = zvf::plan_create(&arguments.out, &mut source, design, &options, tasks)
        .await
        .map_err(|error| with_hint(Operation::Plan, error))?;
    progress.finish();
    Ok((planned, rounding.warning(&[]).into_iter().collect()))
}

/// Size of the vertices, in bytes, above which a file is read in batches.
const LARGE: u64 = 1 << 30;

/// Opens the input to be read in batches, if it is large or shared among processes. Returns `None`
/// if it is to be read whole, and an error if it must be shared but cannot be read in batches.
fn streamed(
    arguments: &CreateArgs,
    kind: GeometryKind,
) -> Result<Option<TableStream>, Box<dyn Error>> {
    let options = arguments.options();
    if options.overwrite {
        return Ok(None);
    }
    // A file that is read whole needs up to six times its size in memory.
    let max = options.memory.map_or(LARGE, |memory| memory / 6);
    let min = if options.workers.is_some() { 0 } else { max };
    // One process divides links.
    let stream = if kind.is_linked() && options.workers.is_some() {
        Err(WholeFile::Kind(kind.name()))
    } else {
        TableStream::open(&arguments.input.from, &arguments.reading(kind), min)?
    };
    if options.workers.is_some() {
        return stream
            .map(Some)
            .map_err(|reason| CreateSettingsError::NotShared(reason).into());
    }
    let is_large = |stream: &TableStream| stream.bytes() > max && !arguments.is_padded();
    Ok(stream.ok().filter(is_large))
}

/// Writes a store from a file of about `size` bytes that is read in batches.
async fn create_large(
    arguments: &CreateArgs,
    mut design: Design,
    stream: &mut (dyn GeometrySource + Send),
    size: u64,
    mut report: CreateOutput,
) -> Result<CommandOutcome, Box<dyn Error>> {
    arguments.declare(&mut design, &AttributeNames::of_source(stream)?)?;
    let meter = ProgressMeter::default();
    let what = format!("writing {}", arguments.out);
    let progress = PausableProgress::start(arguments.plan_check(), what, meter.clone());
    let options = arguments
        .options()
        .create_options(meter.clone(), progress.check())?;
    let mut rounding = RoundingCheck::new(design.dtype);
    meter.start_reading(size);
    let mut source = MeasuredSource {
        source: stream,
        check: &mut rounding,
        is_measured: false,
        vertices: 0,
        meter,
        size,
    };
    let created = write::create_from(&arguments.out, &mut source, &design, &options).await?;
    progress.finish();
    report.note(dropped_note(source.vertices, created.vertices));
    report.created(created);
    report.warn(rounding.warning(&[]));
    Ok(arguments.done(&report)?)
}
