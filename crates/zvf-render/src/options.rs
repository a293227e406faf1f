//! What is asked of a picture.

use core::str::FromStr;

use zvf::query::{LevelChoice, geometry::Bbox, predicate::Scope};

use crate::{
    color::{Background, Color},
    palette::Colormap,
    view::Viewpoint,
};

/// What gives things their colours.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ColorBy {
    /// Directions of paths, objects of what is linked, one colour otherwise.
    #[default]
    Auto,
    /// The direction: red along the first axis, green along the second, blue along the third.
    Orientation,
    /// The object.
    Object,
    /// One colour.
    Fixed(Color),
    /// An attribute; of the scopes that have it the first of vertex, fragment, link, object.
    Attribute(Option<Scope>, String),
}

impl FromStr for ColorBy {
    type Err = core::convert::Infallible;

    /// `orientation`, `object`, `#rrggbb`, or the name of an attribute, as `fa` or `object.length`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "orientation" => Self::Orientation,
            "object" => Self::Object,
            _ => match text.parse() {
                Ok(color) => Self::Fixed(color),
                Err(_) => {
                    let scoped = Scope::ALL.into_iter().find_map(|scope| {
                        let name = text.strip_prefix(scope.name())?.strip_prefix('.')?;
                        Some(Self::Attribute(Some(scope), name.to_owned()))
                    });
                    scoped.unwrap_or_else(|| Self::Attribute(None, text.to_owned()))
                }
            },
        })
    }
}

/// What is asked of a picture.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RenderOptions {
    /// Dots of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Where it is looked at from; from a corner, from above where there are two axes.
    pub view: Option<Viewpoint>,
    /// What gives things their colours.
    pub color_by: ColorBy,
    /// Colours of numbers.
    pub colormap: Colormap,
    /// The numbers at the ends of the colours; without those at the second and the ninety-eighth
    /// hundredth of what is drawn.
    pub range: Option<(f64, f64)>,
    /// What is drawn on.
    pub background: Background,
    /// The level; without, the finest of at most [`DEFAULT_VERTEX_BUDGET`] vertices as declared, and of a
    /// box what is found in it.
    pub level: Option<LevelChoice>,
    /// Only what is in it, cut at its sides.
    pub bbox: Option<Bbox>,
    /// A further geometry of a composite store.
    pub geometry: Option<String>,
    /// Width of lines, or of points across, in dots; by how much there is to draw without.
    pub stroke: Option<f32>,
    /// What stands above; nothing when empty.
    pub title: Option<String>,
    /// Vertices that are kept in memory, 16 bytes each, so that all is read once; of more, all is
    /// read twice and nothing kept. Links are not drawn of more.
    pub max_cached_vertices: usize,
    /// Whether there is only what is in the store, and nothing written beside it.
    pub annotations: bool,
}

/// Vertices that are drawn without having been asked for.
pub const DEFAULT_VERTEX_BUDGET: u64 = 3_000_000;

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            width: 1200,
            height: 900,
            view: None,
            color_by: ColorBy::Auto,
            colormap: Colormap::default(),
            range: None,
            background: Background::default(),
            level: None,
            bbox: None,
            geometry: None,
            stroke: None,
            title: None,
            max_cached_vertices: 8_000_000,
            annotations: true,
        }
    }
}
