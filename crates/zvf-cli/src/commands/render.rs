//! `zvf render`: draws a store as a picture.

use std::{error::Error, path::PathBuf};

use serde_json::{Value, json};
use zvf::{Dataset, LevelChoice, LevelId, Mode, OpenOptions, Query, VertexBudget};
use zvf_render::{
    Background, ColorBy, Colormap, DEFAULT_VERTEX_BUDGET, RenderError, RenderOptions, RenderOutput,
    Viewpoint, render,
};

use crate::{
    arguments::{SelectionArgs, axis_names},
    display::{count_noun, group_digits},
    hint::with_query_hint,
    outcome::CommandOutcome,
    progress::ProgressLine,
};

/// Draw a store as a picture, with a legend, a scale bar and the axes
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf render tracts.zv -o tracts.png
  zvf render tracts.zv -o fa.png --color fa --view sagittal
  zvf render tracts.zv -o long.png --where \"object.length > 9\"")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct RenderArgs {
    /// Store: a folder, a .zip file, or an address that this build supports.
    store: String,
    /// Picture to write, a .png file; an existing file is replaced.
    #[arg(short, long, value_name = "FILE", value_parser = png)]
    output: PathBuf,

    /// Source of colours: an attribute, an axis, orientation, object, or a fixed colour.
    ///
    /// An axis, such as `z`, colours by coordinate; `vertex.z` names an attribute instead.
    /// `orientation` is red along the first axis, green along the second and blue along the third.
    /// The default is orientation for paths, object for skeletons and graphs, and the colours of
    /// the vertices for points and meshes that have them as 8-bit channels.
    #[arg(
        long,
        value_name = "ATTR|AXIS|orientation|object|#rrggbb",
        help_heading = "Look"
    )]
    color: Option<ColorBy>,
    /// Viewpoint: axial, coronal, sagittal, iso, or azimuth,elevation in degrees.
    #[arg(
        long,
        value_name = "VIEW",
        help_heading = "Look",
        allow_hyphen_values = true
    )]
    view: Option<Viewpoint>,
    /// Draw the second axis downwards, as rows of images are.
    #[arg(long, help_heading = "Look")]
    flip_y: bool,
    /// Use a perspective projection.
    #[arg(long, help_heading = "Look")]
    perspective: bool,
    /// Colour map of numbers.
    #[arg(long, value_enum, default_value = "viridis", help_heading = "Look")]
    palette: Palette,
    /// Numbers at the ends of the colour map, or black and full brightness of red, green, blue.
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, help_heading = "Look", allow_hyphen_values = true)]
    range: Option<(f64, f64)>,
    /// Background colour.
    #[arg(long, value_enum, default_value = "dark", help_heading = "Look")]
    background: BackgroundArg,
    /// Width of lines and diameter of points, in pixels.
    #[arg(long, value_name = "PIXELS", value_parser = stroke, help_heading = "Look")]
    stroke: Option<f32>,
    /// Width and height of the picture in pixels.
    #[arg(long, value_name = "WxH", default_value = "1200x900", value_parser = size, help_heading = "Look")]
    size: (usize, usize),
    /// Title; by default the name of the store.
    #[arg(long, value_name = "TEXT", help_heading = "Look")]
    title: Option<String>,
    /// Do not darken distant geometry.
    #[arg(long, help_heading = "Look")]
    no_depth_cue: bool,
    /// Draw only the geometry, without title, legend, scale bar or axes.
    #[arg(long, help_heading = "Look", conflicts_with = "title")]
    bare: bool,

    /// Level number; by default the finest level with at most 3,000,000 vertices, or the coarsest.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "Selection")]
    level: Option<u32>,
    /// Draw at most this many vertices, as fine as possible.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "Selection",
        conflicts_with_all = ["nearest", "chunks"])]
    budget: Option<u64>,
    #[command(flatten)]
    selecting: SelectionArgs,
    /// Additional geometry of a composite store.
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    geometry: Option<String>,

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

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Palette {
    Viridis,
    Cividis,
    Inferno,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum BackgroundArg {
    Dark,
    Light,
}

fn png(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_png = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("png"));
    if !is_png {
        return Err("the file name must end in .png".to_owned());
    }
    zvf_files::check_writable(&path).map_err(|error| error.to_string())?;
    Ok(path)
}

fn range(text: &str) -> Result<(f64, f64), &'static str> {
    let wrong = "write a range as two numbers separated by a comma, the lower first";
    let (low, high) = text.split_once(',').ok_or(wrong)?;
    let number = |text: &str| {
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    };
    let range = number(low).zip(number(high));
    range.filter(|(low, high)| low < high).ok_or(wrong)
}

fn stroke(text: &str) -> Result<f32, &'static str> {
    let dots = text.parse::<f32>().ok();
    dots.filter(|dots| (0.1..=200.0).contains(dots))
        .ok_or("the stroke must be 0.1 to 200 pixels")
}

fn size(text: &str) -> Result<(usize, usize), &'static str> {
    let sides = text
        .split_once('x')
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    sides.ok_or("write a size as 1200x900")
}

impl RenderArgs {
    fn options(&self) -> RenderOptions {
        let mut options = RenderOptions::default();
        (options.width, options.height) = self.size;
        options.view = self.view;
        if self.perspective {
            options.view = Some(self.view.unwrap_or(Viewpoint::ISO).perspective());
        }
        options.flip_y = self.flip_y;
        options.color_by = self.color.clone().unwrap_or_default();
        options.colormap = match self.palette {
            Palette::Viridis => Colormap::Viridis,
            Palette::Cividis => Colormap::Cividis,
            Palette::Inferno => Colormap::Inferno,
        };
        options.range = self.range;
        options.background = match self.background {
            BackgroundArg::Dark => Background::Dark,
            BackgroundArg::Light => Background::Light,
        };
        options.level = match (self.level, self.budget) {
            (Some(level), _) => Some(LevelChoice::Number(LevelId::new(level))),
            (None, Some(budget)) => Some(VertexBudget::new(budget).into()),
            (None, None) => None,
        };
        options.geometry.clone_from(&self.geometry);
        options.stroke = self.stroke;
        options.title = Some(self.title.clone().unwrap_or_else(|| name(&self.store)));
        options.depth_cue = !self.no_depth_cue;
        options.annotations = !self.bare;
        options
    }
}

/// Adds the selection. A box clips unless `--mode` says otherwise, so that the picture shows the box.
async fn select(
    arguments: &RenderArgs,
    dataset: &Dataset,
    options: &mut RenderOptions,
) -> Result<(), Box<dyn Error>> {
    let selecting = &arguments.selecting;
    selecting.check_axes(&axis_names(dataset))?;
    if selecting.bbox().is_some() {
        options.selection = Query::new().mode(Mode::Clip);
    }
    selecting.select(&mut options.selection)?;
    selecting.search(dataset, &mut options.selection).await?;
    options.selected = selecting.describe();
    Ok(())
}

/// Returns the last component of an address.
fn name(address: &str) -> String {
    let mut parts = address
        .split(['/', '\\'])
        .rev()
        .filter(|part| !part.is_empty());
    parts.next().unwrap_or(address).to_owned()
}

/// Draws the picture.
pub(crate) async fn run(arguments: &RenderArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    // A single query gains nothing from a cell cache.
    let options = OpenOptions::default()
        .cache(0)
        .anonymous(arguments.anonymous);
    let dataset = Dataset::open_with(&arguments.store, &options).await?;
    let progress = ProgressLine::for_dataset(&dataset, arguments.quiet);
    let mut options = arguments.options();
    select(arguments, &dataset, &mut options).await?;
    let rendered = render(&dataset, &options)
        .await
        .map_err(|error| explain_empty(error, arguments, &dataset))?;
    zvf_files::write_bytes(&arguments.output, &rendered.picture.png())?;
    drop(progress);
    let mut done = CommandOutcome::from(match (arguments.json, arguments.quiet) {
        (true, _) => serde_json::to_string_pretty(&object(arguments, &dataset, &rendered))?,
        (false, true) => String::new(),
        (false, false) => summary(arguments, &dataset, &rendered),
    });
    if !arguments.json {
        done.warnings.clone_from(&rendered.notes);
        if arguments.level.is_none()
            && arguments.budget.is_none()
            && rendered.vertices > DEFAULT_VERTEX_BUDGET
        {
            let advice = "a level with fewer vertices draws faster: make one with zvf pyramid, which \
                          also leaves out objects with --sparsity, or give --budget";
            done.warnings.push(advice.to_owned());
        }
        if rendered.skipped_vertices > 0 {
            let left_out = count_noun(rendered.skipped_vertices, "vertex", "vertices");
            done.warnings.push(format!(
                "{left_out} left out: coordinates not finite or too far away"
            ));
        }
    }
    Ok(done)
}

/// Adds the reason to the error of an empty picture.
fn explain_empty(error: RenderError, arguments: &RenderArgs, dataset: &Dataset) -> Box<dyn Error> {
    let bbox = arguments.selecting.bbox();
    match (error, bbox.and_then(|bbox| bbox.why_empty(dataset.root()))) {
        (RenderError::Store(error), _) => with_query_hint(error, arguments.selecting.is_filtered()),
        (error @ RenderError::Empty(_), Some(why)) => format!("{error}; {why}").into(),
        (error, _) => error.into(),
    }
}

fn object(arguments: &RenderArgs, dataset: &Dataset, rendered: &RenderOutput) -> Value {
    let activity = dataset.store().activity();
    let levels: Vec<u32> = rendered.levels.iter().map(|level| level.number()).collect();
    json!({
        "file": arguments.output,
        "width": rendered.picture.width(),
        "height": rendered.picture.height(),
        "levels": levels,
        "vertices": rendered.vertices,
        "items": rendered.items,
        "left_out": rendered.skipped_vertices,
        "requests": activity.requests.saturating_add(activity.lists),
        "bytes_read": activity.bytes_read,
        "colors": rendered.colors,
        "notes": rendered.notes,
    })
}

fn summary(arguments: &RenderArgs, dataset: &Dataset, rendered: &RenderOutput) -> String {
    let activity = dataset.store().activity();
    let levels: Vec<String> = rendered.levels.iter().map(LevelId::to_string).collect();
    format!(
        "{}: {} of level {} (colours: {}); {}, {} bytes",
        arguments.output.display(),
        count_noun(rendered.vertices, "vertex", "vertices"),
        levels.join(", "),
        rendered.colors,
        count_noun(
            activity.requests.saturating_add(activity.lists),
            "request",
            "requests"
        ),
        group_digits(activity.bytes_read),
    )
}
