//! Options of a picture.

use core::str::FromStr;

use zvf::{LevelChoice, Query, Scope};

use crate::{
    color::{Background, Color},
    palette::Colormap,
    view::Viewpoint,
};

/// The source of colours.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum ColorBy {
    /// By orientation for paths, and by object for skeletons and graphs. Points and meshes have the
    /// colours of the first attribute of vertices with three or four channels of 8 bits that all
    /// levels have, or of one named `rgb` or `rgba` with 16 bits as LAS files have, or one colour.
    #[default]
    Auto,
    /// By direction: red along the first axis, green along the second, blue along the third.
    Orientation,
    /// By object.
    Object,
    /// One colour.
    Fixed(Color),
    /// By an attribute. Without a scope, an axis of the store with this name, or else the first of
    /// vertex, fragment, link and object that has the attribute.
    Attribute(Option<Scope>, String),
}

impl FromStr for ColorBy {
    type Err = core::convert::Infallible;

    /// Parses `orientation`, `object`, `#rrggbb`, or an axis or attribute such as `z`, `fa` or
    /// `object.length`.
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

/// Options of [`render()`](crate::render()).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RenderOptions {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Viewpoint; by default from a corner, or from above for stores of two axes.
    pub view: Option<Viewpoint>,
    /// Draws the second axis downwards, as rows of images are.
    pub flip_y: bool,
    /// Source of colours.
    pub color_by: ColorBy,
    /// Colours of numbers.
    pub colormap: Colormap,
    /// Numbers at both ends of the colour map; by default the 2nd and 98th percentile. For
    /// attributes of red, green and blue, the values of black and of full brightness; by default
    /// the range of their type, or of their values if the type is wider.
    pub range: Option<(f64, f64)>,
    /// Background.
    pub background: Background,
    /// Level to draw. By default the finest level that declares at most [`DEFAULT_VERTEX_BUDGET`]
    /// vertices; with a selection, the finest level with that many selected vertices; with
    /// `geometry`, level 0.
    pub level: Option<LevelChoice>,
    /// Draws only what the region, mode, nearest, objects, groups, chunks and predicate of this query
    /// select. Its other fields have no effect.
    pub selection: Query,
    /// Description of the selection below the title; `None` or empty for none.
    pub selected: Option<String>,
    /// Name of an additional geometry of a composite store.
    pub geometry: Option<String>,
    /// Width of lines and diameter of points in pixels; by default chosen by the amount of data.
    pub stroke: Option<f32>,
    /// Title above the picture; `None` or empty for none.
    pub title: Option<String>,
    /// Maximum number of vertices cached in memory, 20 bytes each. Larger data is read twice;
    /// larger data with links is not drawn.
    pub max_cached_vertices: usize,
    /// Darkens distant geometry. Hue and saturation stay those of the legend.
    pub depth_cue: bool,
    /// Draws title, legend, scale bar and axes.
    pub annotations: bool,
}

/// Default limit on the number of vertices drawn.
pub const DEFAULT_VERTEX_BUDGET: u64 = 3_000_000;

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            width: 1200,
            height: 900,
            view: None,
            flip_y: false,
            color_by: ColorBy::Auto,
            colormap: Colormap::default(),
            range: None,
            background: Background::default(),
            level: None,
            selection: Query::new(),
            selected: None,
            geometry: None,
            stroke: None,
            title: None,
            max_cached_vertices: 8_000_000,
            depth_cue: true,
            annotations: true,
        }
    }
}
