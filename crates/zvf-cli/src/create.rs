//! `zvf create`: a file of geometry from the command line, as a store.

mod arguments;
mod engine;
mod report;
pub(crate) mod values;

use std::{error::Error, path::Path};

use zvf::{
    OpenOptions,
    build::{AxisSpec, Design},
};

use crate::{
    command::Done,
    input::{self, Input, Stream},
    number::{counted, of_len},
    progress::{Meter, Progress},
};

pub use arguments::{Arguments, UsageError};
pub use engine::{Created, OptionError, Options};
pub use report::Report;

/// Reads a file, and writes a store of what is in it.
pub(crate) async fn run(arguments: &Arguments) -> Result<Done, Box<dyn Error>> {
    let mut design = arguments.design()?;
    if let Some(stream) = streamed(arguments)? {
        return large(arguments, &design, stream).await;
    }
    let name = arguments.input.from.path().display().to_string();
    let progress = Progress::saying(arguments.quiet, move || format!("reading {name}"));
    let input = input::read(&arguments.input.from, &arguments.reading())?;
    drop(progress);
    name_axes(&mut design, &input);
    let out = arguments.out.clone();
    let vertices = of_len(input.geometry.vertices());
    let vertices = counted(vertices, ["vertex", "vertices"]);
    let options = arguments.options();
    options.check(&input.geometry)?;
    let meter = Meter::default();
    let what = format!("writing {vertices} to {out}");
    let progress = Progress::measured(arguments.quiet, what, meter.clone());
    let mut report = Report::new(&arguments.out, design.kind);
    report.read(&input);
    let created = engine::create(&arguments.out, input.geometry, &design, &options, meter).await?;
    drop(progress);
    report.created(created);
    Ok(arguments.done(&report)?)
}

/// Does a task of another process.
pub(crate) async fn task(file: &Path) -> Result<Done, Box<dyn Error>> {
    zvf::run_task(file, &OpenOptions::default()).await?;
    Ok(Done::default())
}

/// Bytes of vertices from which on a file is not read whole.
const LARGE: u64 = 1 << 30;

/// The input in batches, where it is large and can be had so.
fn streamed(arguments: &Arguments) -> Result<Option<Stream>, Box<dyn Error>> {
    let options = arguments.options();
    if options.overwrite {
        return Ok(None);
    }
    let stream = Stream::open(&arguments.input.from, &arguments.reading())?;
    if options.workers.is_some() {
        return stream
            .map(Some)
            .ok_or_else(|| OptionError::NotShared.into());
    }
    // What is read whole takes up to six times as much on its way.
    let most = options.memory.map_or(LARGE, |memory| memory / 6);
    Ok(stream.filter(|stream| stream.bytes() > most))
}

/// Writes a store of a file that is not read whole.
async fn large(
    arguments: &Arguments,
    design: &Design,
    stream: Stream,
) -> Result<Done, Box<dyn Error>> {
    let meter = Meter::default();
    let what = format!("writing {}", arguments.out);
    let progress = Progress::measured(arguments.quiet, what, meter.clone());
    let mut report = Report::new(&arguments.out, design.kind);
    let options = arguments.options();
    let created = engine::create_from(&arguments.out, stream, design, &options, meter).await?;
    drop(progress);
    report.created(created);
    Ok(arguments.done(&report)?)
}

/// Axes are called as in the file when no option says how.
fn name_axes(design: &mut Design, input: &Input) {
    if let (None, Some(names)) = (&design.axes, &input.axes) {
        let axes = names.iter().map(|name| AxisSpec {
            name: name.clone(),
            kind: "space".to_owned(),
            unit: None,
        });
        design.axes = Some(axes.collect());
    }
}
