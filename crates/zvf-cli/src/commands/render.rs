//! `zvf render`.

use std::{error::Error, path::PathBuf};

use serde_json::{Value, json};
use zvf::{
    Dataset, OpenOptions,
    model::level::LevelId,
    query::{Budget, LevelChoice, geometry::Bbox},
};
use zvf_render::{
    Background, ColorBy, Colormap, RenderError, RenderOptions, RenderOutput, Viewpoint, render,
};

use crate::{
    display::{count_noun, group_digits},
    formats,
    hint::outside_bounds,
    outcome::CommandOutcome,
    progress::Progress,
};

/// Draws a store as a picture: points, lines, skeletons, graphs and meshes, with what
/// colours mean, a scale bar and the axes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf render tracts.zv -o tracts.png
  zvf render tracts.zv -o fa.png --color fa --view sagittal")]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct RenderArgs {
    /// A folder, a .zip file, or an address of a kind this build knows.
    store: String,
    /// The picture, a .png file.
    #[arg(short, long, value_name = "FILE", value_parser = png)]
    output: PathBuf,

    /// What gives colours: an attribute, as fa or object.length; orientation, red along the
    /// first axis, green along the second, blue along the third; object; or #rrggbb. Without,
    /// directions of paths, objects of skeletons and graphs.
    #[arg(
        long,
        value_name = "ATTR|orientation|object|#rrggbb",
        help_heading = "Look"
    )]
    color: Option<ColorBy>,
    /// From where: axial, coronal, sagittal, iso, or azimuth,elevation in degrees.
    #[arg(
        long,
        value_name = "VIEW",
        help_heading = "Look",
        allow_hyphen_values = true
    )]
    view: Option<Viewpoint>,
    /// Draws what is nearer larger.
    #[arg(long, help_heading = "Look")]
    perspective: bool,
    /// Colours of numbers.
    #[arg(long, value_enum, default_value = "viridis", help_heading = "Look")]
    palette: Palette,
    /// The numbers at both ends of the colours.
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, help_heading = "Look", allow_hyphen_values = true)]
    range: Option<(f64, f64)>,
    /// What is drawn on.
    #[arg(long, value_enum, default_value = "dark", help_heading = "Look")]
    background: Ground,
    /// Width of lines, and of points across, in dots.
    #[arg(long, value_name = "DOTS", value_parser = stroke, help_heading = "Look")]
    stroke: Option<f32>,
    /// Dots of a row, and rows.
    #[arg(long, value_name = "WxH", default_value = "1200x900", value_parser = size, help_heading = "Look")]
    size: (usize, usize),
    /// What stands above; the name of the store without.
    #[arg(long, value_name = "TEXT", help_heading = "Look")]
    title: Option<String>,
    /// Draws nothing but what is in the store: no title, legend, scale or axes.
    #[arg(long, help_heading = "Look", conflicts_with = "title")]
    bare: bool,

    /// The level of this number. Without it and --budget, the finest of at most 3 000 000
    /// vertices, or the coarsest.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "What")]
    level: Option<u32>,
    /// As fine as so many vertices can be.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "What")]
    budget: Option<u64>,
    /// Only what is in a box, cut at its sides: the lower bound of each axis, then the upper.
    #[arg(long, value_name = "x0,y0,z0,x1,y1,z1", value_parser = Bbox::parse,
        help_heading = "What", allow_hyphen_values = true)]
    bbox: Option<Bbox>,
    /// A further geometry of a composite store.
    #[arg(long, value_name = "NAME", help_heading = "What")]
    geometry: Option<String>,

    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    /// Shows no progress, and prints nothing but what is wrong.
    #[arg(long)]
    quiet: bool,
    /// Sign no request: for public buckets.
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
enum Ground {
    Dark,
    Light,
}

fn png(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_png = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("png"));
    if !is_png {
        return Err("pictures are written as .png".to_owned());
    }
    formats::check_writable(&path).map_err(|error| error.to_string())?;
    Ok(path)
}

fn range(text: &str) -> Result<(f64, f64), &'static str> {
    let wrong = "a range is two numbers with a comma between, the lower first";
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
        .ok_or("a stroke has 0.1 to 200 dots")
}

fn size(text: &str) -> Result<(usize, usize), &'static str> {
    let sides = text.split_once('x');
    let sides = sides.and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    sides.ok_or("a size is written 1200x900")
}

impl RenderArgs {
    fn options(&self) -> RenderOptions {
        let mut options = RenderOptions::default();
        (options.width, options.height) = self.size;
        options.view = self.view;
        if self.perspective {
            options.view = Some(self.view.unwrap_or(Viewpoint::ISO).perspective());
        }
        options.color_by = self.color.clone().unwrap_or_default();
        options.colormap = match self.palette {
            Palette::Viridis => Colormap::Viridis,
            Palette::Cividis => Colormap::Cividis,
            Palette::Inferno => Colormap::Inferno,
        };
        options.range = self.range;
        options.background = match self.background {
            Ground::Dark => Background::Dark,
            Ground::Light => Background::Light,
        };
        options.level = match (self.level, self.budget) {
            (Some(level), _) => Some(LevelChoice::Number(LevelId::new(level))),
            (None, Some(budget)) => Some(Budget::new(budget).into()),
            (None, None) => None,
        };
        options.bbox = self.bbox;
        options.geometry.clone_from(&self.geometry);
        options.stroke = self.stroke;
        options.title = Some(self.title.clone().unwrap_or_else(|| name(&self.store)));
        options.annotations = !self.bare;
        options
    }
}

/// The last part of an address.
fn name(address: &str) -> String {
    let parts = address.split(['/', '\\']);
    let mut parts = parts.rev().filter(|part| !part.is_empty());
    parts.next().unwrap_or(address).to_owned()
}

/// Draws the picture.
pub(crate) async fn run(arguments: &RenderArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    // Nobody asks again.
    let options = OpenOptions::default()
        .cache(0)
        .anonymous(arguments.anonymous);
    let dataset = Dataset::open_with(&arguments.store, &options).await?;
    let progress = Progress::for_dataset(&dataset, arguments.quiet);
    let rendered = render(&dataset, &arguments.options()).await;
    let rendered = rendered.map_err(|error| told(error, arguments, &dataset))?;
    formats::write_bytes(&arguments.output, &rendered.picture.png())?;
    drop(progress);
    let mut done = CommandOutcome::from(match (arguments.json, arguments.quiet) {
        (true, _) => serde_json::to_string_pretty(&object(arguments, &dataset, &rendered))?,
        (false, true) => String::new(),
        (false, false) => sentence(arguments, &dataset, &rendered),
    });
    if !arguments.json {
        done.warnings.clone_from(&rendered.notes);
        if rendered.skipped_vertices > 0 {
            let left_out = count_noun(rendered.skipped_vertices, "vertex", "vertices");
            done.warnings
                .push(format!("{left_out} without a place left out"));
        }
    }
    Ok(done)
}

/// Why there is no picture, with the way out.
fn told(error: RenderError, arguments: &RenderArgs, dataset: &Dataset) -> Box<dyn Error> {
    let bbox = arguments.bbox.as_ref();
    match (error, bbox.and_then(|bbox| outside_bounds(dataset, bbox))) {
        (RenderError::Store(error), _) => error.into(),
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
        "notes": rendered.notes,
    })
}

fn sentence(arguments: &RenderArgs, dataset: &Dataset, rendered: &RenderOutput) -> String {
    let activity = dataset.store().activity();
    let levels: Vec<String> = rendered.levels.iter().map(LevelId::to_string).collect();
    format!(
        "{}: {} of level {}; {}, {} bytes",
        arguments.output.display(),
        count_noun(rendered.vertices, "vertex", "vertices"),
        levels.join(", "),
        count_noun(
            activity.requests.saturating_add(activity.lists),
            "request",
            "requests"
        ),
        group_digits(activity.bytes_read),
    )
}
