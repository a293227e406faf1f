//! `zvf export`: writes a store in the form of another program.

use std::error::Error;
#[cfg(feature = "serve")]
use std::{fs::File, io::Write, path::PathBuf};

use serde_json::{Value, json};
use zvf::{Dataset, Follow, OpenOptions, TaskPlanOptions};
use zvf_serve::{
    ExportOptions, ExportPlan, ExportReport, ExportTarget, Layer, LayerKind, MeshFormat, export,
    plan_export,
};
#[cfg(feature = "serve")]
use zvf_serve::{store_name, viewer};

use crate::{
    display::{count_noun, group_digits},
    outcome::CommandOutcome,
    progress::{ProgressLine, ProgressMeter},
};

/// Write a store in the form of another program
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    form: ExportForm,
}

#[derive(Debug, clap::Subcommand)]
enum ExportForm {
    Precomputed(PrecomputedArgs),
    #[cfg(feature = "serve")]
    Viewer(ViewerArgs),
}

/// Write the page that shows stores in a browser
///
/// The page is one file, and needs no other. Beside a store in a bucket or on a web server, it shows
/// the store that its address names: viewer.html?store=tracts.zv. The server must answer requests for
/// ranges, and one of another origin must allow them (CORS). With --inline, the page contains the
/// store, and a browser opens it as a file.
#[cfg(feature = "serve")]
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf export viewer viewer.html
  zvf export viewer tracts.html --inline tracts.zv")]
struct ViewerArgs {
    /// File to write, which must not exist.
    output: PathBuf,
    /// Store that the page contains: a folder, a .zip file, or an address that this build supports,
    /// of up to 64 MiB.
    #[arg(long, value_name = "STORE")]
    inline: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Print nothing but errors.
    #[arg(long)]
    quiet: bool,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
}

/// Write a store as sources of Neuroglancer, which any static file server can serve
///
/// Points, lines, polylines and edges of graphs become annotations with properties and a spatial
/// index; paths, groups of paths, skeletons and graphs become skeletons; meshes become meshes whose
/// levels of detail are the levels of the store. Attributes of objects become properties of segments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf export precomputed tracts.zv tracts.precomputed
  zvf export precomputed tracts.zv lines.precomputed --sharded --layers annotations")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
struct PrecomputedArgs {
    /// Store: a folder, a .zip file, or an address that this build supports.
    store: String,
    /// Folder to write, which must not exist, or address of an empty prefix of a bucket. The same
    /// command continues an interrupted export.
    output: String,
    /// Write every index as shards. Otherwise, indexes of up to 10,000 values are written as one file
    /// for each value.
    #[arg(long)]
    sharded: bool,
    /// Layers to write; by default all that the kind of geometry has.
    #[arg(long, value_name = "LAYER", value_enum, value_delimiter = ',')]
    layers: Vec<LayerArg>,
    /// Attributes to write, by name; by default all.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    properties: Option<Vec<String>>,
    /// Form of meshes: Draco fragments with levels of detail, or level 0 as a file for each object,
    /// without compression.
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    mesh_format: MeshFormatArg,
    /// Address at which the folder will be served; a link to Neuroglancer is printed.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress, and print nothing but warnings and errors.
    #[arg(long)]
    quiet: bool,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
}

/// A kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LayerArg {
    /// Points, lines or polylines with properties and a spatial index.
    Annotations,
    /// A skeleton per object.
    Skeletons,
    /// A mesh per object.
    Meshes,
    /// Properties of objects without a shape.
    Segments,
    /// Properties of groups, and a skeleton per group of paths.
    Groups,
}

impl From<LayerArg> for LayerKind {
    fn from(layer: LayerArg) -> Self {
        match layer {
            LayerArg::Annotations => Self::Annotations,
            LayerArg::Skeletons => Self::Skeletons,
            LayerArg::Meshes => Self::Meshes,
            LayerArg::Segments => Self::Segments,
            LayerArg::Groups => Self::Groups,
        }
    }
}

/// A form of meshes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum MeshFormatArg {
    /// Draco fragments with levels of detail.
    #[default]
    Draco,
    /// Level 0 as a file for each object, without compression.
    Legacy,
}

impl From<MeshFormatArg> for MeshFormat {
    fn from(format: MeshFormatArg) -> Self {
        match format {
            MeshFormatArg::Draco => Self::Draco,
            MeshFormatArg::Legacy => Self::Legacy,
        }
    }
}

/// Runs the export.
pub(crate) async fn run(arguments: &ExportArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    match &arguments.form {
        ExportForm::Precomputed(arguments) => precomputed(arguments).await,
        #[cfg(feature = "serve")]
        ExportForm::Viewer(arguments) => viewer(arguments).await,
    }
}

/// Writes layers for Neuroglancer.
async fn precomputed(arguments: &PrecomputedArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    // An export of a store that is changed meanwhile fails at once.
    let options = OpenOptions::default()
        .anonymous(arguments.anonymous)
        .follow(Follow::Never);
    let dataset = Dataset::open_with(&arguments.store, &options).await?;
    let meter = ProgressMeter::default();
    let message = format!("exporting {}", arguments.store);
    let progress = ProgressLine::with_meter(arguments.quiet, message, meter.clone());
    let report = |done, total| meter.set(done, total);
    let target = ExportTarget::parse(&arguments.output);
    let report = export(&dataset, target, &arguments.options(), &report).await?;
    drop(progress);
    let url = arguments.url.as_ref();
    let link = url.map(|url| report.viewer_link(&arguments.store, url));
    let mut done = CommandOutcome::from(match (arguments.json, arguments.quiet) {
        (true, _) => {
            let object = object(&arguments.output, link.as_deref(), &report);
            serde_json::to_string_pretty(&object)?
        }
        (false, true) => String::new(),
        (false, false) => summary(&arguments.output, link, &report),
    });
    if !arguments.json {
        done.warnings.clone_from(&report.notes);
    }
    Ok(done)
}

/// Writes the page.
#[cfg(feature = "serve")]
async fn viewer(arguments: &ViewerArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let output = &arguments.output;
    let page = match &arguments.inline {
        None => viewer::PAGE.to_owned(),
        Some(address) => {
            let options = OpenOptions::default()
                .anonymous(arguments.anonymous)
                .follow(Follow::Never);
            let dataset = Dataset::open_with(address, &options).await?;
            viewer::inline(&store_name(address), dataset.store()).await?
        }
    };
    let failed = |error: std::io::Error| format!("{} cannot be written: {error}", output.display());
    let mut file = File::create_new(output).map_err(failed)?;
    file.write_all(page.as_bytes()).map_err(failed)?;
    let (file, bytes) = (output.display(), page.len());
    Ok(CommandOutcome::from(
        match (arguments.json, arguments.quiet) {
            (true, _) => json!({ "file": file.to_string(), "bytes": bytes }).to_string(),
            (false, true) => String::new(),
            (false, false) => format!("{file}: {} bytes", group_digits(u64::try_from(bytes)?)),
        },
    ))
}

/// Plans the export as tasks.
pub(crate) async fn plan(
    arguments: &ExportArgs,
    tasks: TaskPlanOptions,
) -> Result<ExportPlan, Box<dyn Error>> {
    match &arguments.form {
        ExportForm::Precomputed(arguments) => plan_precomputed(arguments, tasks).await,
        #[cfg(feature = "serve")]
        ExportForm::Viewer(_) => Err("zvf export viewer is one step; run it without a plan".into()),
    }
}

async fn plan_precomputed(
    arguments: &PrecomputedArgs,
    tasks: TaskPlanOptions,
) -> Result<ExportPlan, Box<dyn Error>> {
    let open = OpenOptions::default().anonymous(arguments.anonymous);
    let meter = ProgressMeter::default();
    let message = format!("planning the export of {}", arguments.store);
    let progress = ProgressLine::with_meter(arguments.quiet, message, meter.clone());
    let report = |done, total| meter.set(done, total);
    let target = ExportTarget::parse(&arguments.output);
    let options = arguments.options().url(arguments.url.clone());
    let plan = plan_export(&arguments.store, target, &options, &tasks, &open, &report).await?;
    drop(progress);
    Ok(plan)
}

impl PrecomputedArgs {
    fn options(&self) -> ExportOptions {
        let layers = self.layers.iter().map(|layer| (*layer).into());
        ExportOptions::new()
            .layers(layers.collect::<Vec<LayerKind>>())
            .properties(self.properties.clone())
            .sharded(self.sharded)
            .mesh_format(self.mesh_format.into())
    }
}

/// Returns the folder of a layer.
fn folder(output: &str, layer: &Layer) -> String {
    format!("{}/{}", output.trim_end_matches('/'), layer.folder())
}

/// Describes an export as JSON.
pub(crate) fn object(output: &str, link: Option<&str>, report: &ExportReport) -> Value {
    let layers = report.view.layers().iter().map(|layer| {
        json!({
            "layer": layer.kind.folder(),
            "level": layer.level.number(),
            "folder": folder(output, layer),
            "items": layer.items,
        })
    });
    json!({
        "folder": output,
        "neuroglancer": link,
        "layers": layers.collect::<Vec<_>>(),
        "files": report.files,
        "bytes_written": report.bytes,
        "files_kept": report.kept,
        "notes": report.notes,
    })
}

/// Describes an export as text.
pub(crate) fn summary(output: &str, link: Option<String>, report: &ExportReport) -> String {
    let layers = report.view.layers().iter().map(|layer| {
        let items = match layer.kind {
            LayerKind::Annotations => count_noun(layer.items, "annotation", "annotations"),
            LayerKind::Skeletons => count_noun(layer.items, "skeleton", "skeletons"),
            LayerKind::Meshes => count_noun(layer.items, "mesh", "meshes"),
            LayerKind::Groups => count_noun(layer.items, "group", "groups"),
            _ => count_noun(layer.items, "segment", "segments"),
        };
        format!("{}: {items}", folder(output, layer))
    });
    let mut lines: Vec<String> = layers.collect();
    lines.push(format!(
        "{}, {} bytes",
        count_noun(report.files, "file", "files"),
        group_digits(report.bytes)
    ));
    if report.kept > 0 {
        let kept = count_noun(report.kept, "file", "files");
        lines.push(format!(
            "continued: {kept} of an interrupted export were kept"
        ));
    }
    lines.extend(link);
    lines.join("\n")
}
