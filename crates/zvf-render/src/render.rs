//! Renders a store as a picture.

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use zvf::{
    AttributeInfo, Dataset, GeometryKind, LevelChoice, LevelId, Query, QueryReport, QueryResult,
    Scope, Selection, VertexBudget, numeric::Kind,
};
use zvf_query::QueryError;

use crate::{
    annotate::{self, Notes},
    crs,
    draw::draw,
    error::RenderError,
    frame::Frame,
    options::{ColorBy, DEFAULT_VERTEX_BUDGET, RenderOptions},
    paint::{ColorEncoder, Source},
    picture::Picture,
    scale,
    scene::{Form, Scene, Space},
    view::{Camera, Extent, Rotation, Viewpoint, Window, minus},
};

/// Maximum number of cached link ends per cacheable vertex; meshes have about six.
const LINKS_OF_A_VERTEX: usize = 12;
/// Valid widths and heights of a picture.
const VALID_SIZES: core::ops::RangeInclusive<usize> = 64..=16384;
/// Maximum number of pixels.
const MAX_PIXELS: usize = 1 << 25;
/// Maximum number of samples of a frame, 8 bytes each.
const MAX_SAMPLES: usize = 20_000_000;

/// A picture and a summary of its content.
#[derive(Debug)]
#[non_exhaustive]
pub struct RenderOutput {
    /// The picture.
    pub picture: Picture,
    /// The levels drawn, coarsest first.
    pub levels: Vec<LevelId>,
    /// Number of vertices found.
    pub vertices: u64,
    /// Number of paths, edges or faces found; 0 for points.
    pub items: u64,
    /// Number of vertices that are not drawn because their position is not finite or out of range.
    pub skipped_vertices: u64,
    /// Description of the colours and of the range that they cover.
    pub colors: String,
    /// Tolerated defects of the store, levels that are out of date, and text that cannot be drawn.
    pub notes: Vec<String>,
}

/// Callback for progress: the work done, and the work known so far.
type Report<'a> = dyn Fn(u64, u64) + Send + Sync + 'a;

/// Renders the content of a store.
///
/// Memory is bounded by [`RenderOptions::max_cached_vertices`], the size of a batch, and 8 bytes
/// per sample of the picture, with at most nine samples per pixel. Links take as much memory as
/// their vertices, and meshes three times as much.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::Dataset;
/// use zvf_render::{RenderOptions, Viewpoint, render};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let mut design = Design::new(GeometryKind::Points);
/// # design.chunk_shape = Some(vec![10.0; 3]);
/// # zvf::create(address, Geometry::new(positions), design, &Default::default()).await?;
/// let points = Dataset::open(address).await?;
/// let mut options = RenderOptions::default();
/// (options.width, options.height) = (200, 150);
/// options.view = Some(Viewpoint::AXIAL);
/// let rendered = render(&points, &options).await?;
/// assert_eq!(rendered.vertices, 3);
/// let file = rendered.picture.png();
/// assert!(file.starts_with(b"\x89PNG"));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// Returns [`RenderError`] if the store cannot be read, nothing can be drawn, or the picture would
/// be too large.
pub async fn render(
    dataset: &Dataset,
    options: &RenderOptions,
) -> Result<RenderOutput, RenderError> {
    render_with_progress(dataset, options, &|_, _| {}).await
}

/// Renders the content of a store, as [`render`], and calls `report` with the number of vertices read
/// and drawn, and twice the number of vertices known so far.
///
/// # Errors
///
/// See [`render`].
pub async fn render_with_progress(
    dataset: &Dataset,
    options: &RenderOptions,
    report: &Report<'_>,
) -> Result<RenderOutput, RenderError> {
    let (width, height) = (options.width, options.height);
    let fine = samples_of_a_dot(width, height)?;
    let source = source(dataset, options).await?;
    let axes = drawn_axes(dataset);
    let is_flat = axes.iter().flatten().count() < 3;
    let mut view = options.view.unwrap_or(if is_flat {
        Viewpoint::AXIAL
    } else {
        Viewpoint::ISO
    });
    view.is_flipped |= options.flip_y;
    let (mut survey, query, outcome) = survey(dataset, options, axes, source, view, report).await?;
    let paint = survey.encoder.paint(&survey.source, options)?;

    let zoom = annotate::zoom(width, height);
    let root = dataset.root();
    let of_axis = |at: Option<usize>| at.and_then(|at| root.axes.get(at));
    let mut units = axes
        .iter()
        .flatten()
        .map(|at| root.axes.get(*at).and_then(|axis| axis.unit.as_deref()));
    let unit = units.next().flatten();
    let is_one_unit = units.all(|other| other == unit);
    let of_crs = root.crs.as_ref().and_then(crs::unit);
    let unit = unit.or_else(|| of_crs.as_deref().filter(|_| is_one_unit));
    let levels = levels(&outcome, survey.level);
    let notes = Notes {
        size: [width as f32 / zoom, height as f32 / zoom],
        background: options.background,
        title: options.title.as_deref().unwrap_or_default(),
        subtitle: subtitle(&survey, &levels, options.selected.as_deref()),
        axes: axes.map(|at| of_axis(at).map(|axis| axis.name.as_str())),
        unit,
        has_scale: is_one_unit && !view.is_perspective,
    };
    let window = if options.annotations {
        notes.window(&paint)
    } else {
        Window {
            from: [8.0; 2],
            size: notes.size.map(|side| side - 16.0),
        }
    };
    let dots = |by: f32| Window {
        from: window.from.map(|at| at * zoom * by),
        size: window.size.map(|side| (side * zoom * by).max(1.0)),
    };
    let fitted = |window: Window| {
        if view.is_perspective && survey.is_kept {
            Camera::fit(view, &survey.extent, &window).tightened(&survey.scene.positions, &window)
        } else {
            Camera::fit(view, &survey.extent, &window)
        }
    };
    let (camera, flat) = (fitted(dots(fine as f32)), fitted(dots(1.0)));
    let stroke = match options.stroke {
        Some(dots) => dots * fine as f32,
        None => survey.stroke(&camera, &dots(fine as f32), zoom * fine as f32),
    };
    let mut frame = Frame::new(width, height, fine);
    if survey.is_kept {
        draw(&mut frame, &camera, &paint, &survey.scene, stroke);
        report(2 * survey.vertices, 2 * survey.vertices);
    } else {
        let (found, mut drawn) = (survey.vertices, 0);
        let each = |scene: &Scene, vertices: u64| {
            draw(&mut frame, &camera, &paint, scene, stroke);
            drawn += vertices;
            report(found + drawn, 2 * found);
        };
        again(dataset, &query, &mut survey, each).await?;
    }
    let mut picture = frame.picture(&camera, options.background, options.depth_cue);
    let mut messages = outcome.notes;
    if options.annotations {
        let sheet = notes.sheet(&paint, &flat, zoom);
        picture.draw(&sheet, zoom);
        messages.extend(sheet.substitution_note());
    }
    Ok(RenderOutput {
        picture,
        levels,
        vertices: survey.vertices,
        items: survey.items,
        skipped_vertices: survey.skipped_vertices,
        colors: paint.describe(),
        notes: messages,
    })
}

/// Returns the number of samples per pixel along each side.
fn samples_of_a_dot(width: usize, height: usize) -> Result<usize, RenderError> {
    let is_size = VALID_SIZES.contains(&width) && VALID_SIZES.contains(&height);
    let dots = width
        .checked_mul(height)
        .filter(|dots| *dots <= MAX_PIXELS)
        .filter(|_| is_size)
        .ok_or(RenderError::Size { width, height })?;
    let fits = |fine: &usize| fine * fine * dots <= MAX_SAMPLES;
    Ok((1..=3_usize).rev().find(fits).unwrap_or(1))
}

/// Returns the source of colours: the requested one, or a default for the store's geometry.
async fn source(dataset: &Dataset, options: &RenderOptions) -> Result<Source, RenderError> {
    let root = dataset.root();
    if let ColorBy::Attribute(None, name) = &options.color_by
        && let Some(column) = root.axes.iter().position(|axis| axis.name == *name)
    {
        let unit = root.axes.get(column).and_then(|axis| axis.unit.as_deref());
        return Ok(Source::Axis {
            column,
            name: match unit {
                Some(unit) => format!("{name} ({})", scale::symbol(unit)),
                None => name.clone(),
            },
        });
    }
    let is_path = root.kinds().any(GeometryKind::is_paths) && !root.holds(GeometryKind::Mesh);
    let is_linked = root.holds(GeometryKind::Skeletons) || root.holds(GeometryKind::Graphs);
    if matches!(options.color_by, ColorBy::Auto)
        && !is_linked
        && !is_path
        && options.geometry.is_none()
        && let Some(name) = vertex_color(dataset).await?
    {
        return Ok(Source::Attribute(Some(Scope::Vertex), name));
    }
    Ok(Source::of(&options.color_by, is_linked, is_path))
}

/// Returns the first attribute of vertices with the colours of an image, which all levels have.
async fn vertex_color(dataset: &Dataset) -> Result<Option<String>, RenderError> {
    let mut common: Option<Vec<String>> = None;
    for level in dataset.levels() {
        let attributes = dataset.attributes(*level).await?;
        let names = attributes
            .into_iter()
            .filter(is_vertex_color)
            .map(|attribute| attribute.name);
        let is_common = |name: &String| common.as_ref().is_none_or(|names| names.contains(name));
        common = Some(names.filter(is_common).collect());
    }
    Ok(common.and_then(|names| names.into_iter().next()))
}

fn is_vertex_color(attribute: &AttributeInfo) -> bool {
    let is_named = ["rgb", "rgba"]
        .iter()
        .any(|name| attribute.name.eq_ignore_ascii_case(name));
    let is_wide = attribute.data_type == Kind::UInt16.name();
    attribute.scope == Scope::Vertex
        && (attribute.data_type == Kind::UInt8.name() || is_wide && is_named)
        && matches!(attribute.channels, Some(3 | 4))
}

/// Reads everything that is to be drawn once.
async fn survey(
    dataset: &Dataset,
    options: &RenderOptions,
    axes: [Option<usize>; 3],
    source: Source,
    view: Viewpoint,
    report: &Report<'_>,
) -> Result<(Survey, Query, QueryReport), RenderError> {
    let mut survey = Survey::new(Space::new(axes), source, view, options);
    let mut query = query(options, &survey.source);
    let outcome = match survey.read(dataset, &query, report).await {
        // No level is small enough, so the coarsest level is drawn.
        Err(RenderError::Store(error))
            if options.level.is_none()
                && matches!(error.cause(), Some(QueryError::OverVertices { .. })) =>
        {
            survey = Survey::new(Space::new(axes), survey.source, view, options);
            query.level = LevelChoice::Vertices(DEFAULT_VERTEX_BUDGET);
            survey.read(dataset, &query, report).await?
        }
        looked => looked?,
    };
    if survey.extent.is_empty() {
        return Err(RenderError::Empty(match survey.vertices {
            0 => "nothing was found",
            _ => "no vertex has a position",
        }));
    }
    Ok((survey, query, outcome))
}

/// Returns the indices of the first three spatial axes.
fn drawn_axes(dataset: &Dataset) -> [Option<usize>; 3] {
    let axes = dataset.root().axes.iter().enumerate();
    let is_space = |kind: &Option<String>| kind.as_deref().is_none_or(|kind| kind == "space");
    let mut space = axes
        .filter(|(_, axis)| is_space(&axis.kind))
        .map(|(at, _)| at);
    [space.next(), space.next(), space.next()]
}

/// Returns whether a query selects everything.
fn is_everything(query: &Query) -> bool {
    query.region.is_none()
        && query.nearest.is_none()
        && query.objects.is_none()
        && query.groups.is_none()
        && query.chunks.is_none()
        && query.filter.is_none()
}

fn query(options: &RenderOptions, source: &Source) -> Query {
    let selection = &options.selection;
    let level = options.level.unwrap_or(
        if options.geometry.is_some() || selection.nearest.is_some() || selection.chunks.is_some() {
            // Additional geometries have no coarser levels, and these selections are those of a level.
            LevelChoice::Number(LevelId::FULL)
        } else if is_everything(selection) {
            LevelChoice::Vertices(DEFAULT_VERTEX_BUDGET)
        } else {
            // A level's declared count does not tell how many vertices are selected; a budget counts them.
            LevelChoice::Budget(VertexBudget::new(DEFAULT_VERTEX_BUDGET))
        },
    );
    let columns = match source {
        Source::Attribute(scope, name) => Selection::Named(vec![(*scope, name.clone())]),
        _ => Selection::none(),
    };
    let mut query = selection
        .clone()
        .level(level)
        .columns(columns)
        .counter_clockwise(true);
    query.geometry.clone_from(&options.geometry);
    query.owners = source.needs_objects();
    query
}

/// Returns the declared numbers of vertices of the levels that the query may read as a whole.
async fn declared_vertices(
    dataset: &Dataset,
    query: &Query,
) -> Result<BTreeMap<LevelId, u64>, RenderError> {
    let mut declared = BTreeMap::new();
    let levels = match &query.level {
        _ if !is_everything(query) || query.geometry.is_some() => &[],
        LevelChoice::Number(level) => core::slice::from_ref(level),
        LevelChoice::Vertices(_) => dataset.levels(),
        _ => &[],
    };
    for level in levels {
        let count = dataset.level(*level).await?.vertex_count;
        declared.extend(count.map(|count| (*level, count)));
    }
    Ok(declared)
}

fn levels(outcome: &QueryReport, only: LevelId) -> Vec<LevelId> {
    if outcome.levels.is_empty() {
        vec![only]
    } else {
        outcome.levels.iter().map(|used| used.level).collect()
    }
}

fn subtitle(survey: &Survey, levels: &[LevelId], selected: Option<&str>) -> String {
    let levels: Vec<String> = levels.iter().map(LevelId::to_string).collect();
    let vertices = scale::grouped(survey.vertices);
    let items = scale::grouped(survey.items);
    let found = match survey.scene.form {
        Form::Points => format!("{vertices} points"),
        Form::Paths => format!("{items} paths, {vertices} vertices"),
        Form::Edges => format!("{items} edges, {vertices} vertices"),
        Form::Faces => format!("{items} faces, {vertices} vertices"),
    };
    let found = format!("{found} · level {}", levels.join(", "));
    match selected.filter(|selected| !selected.is_empty()) {
        Some(selected) => format!("{found} · {selected}"),
        None => found,
    }
}

/// The first pass over the data: extent, colour codes and, within the cache limit, the scene.
struct Survey {
    space: Space,
    source: Source,
    rotation: Rotation,
    extent: Extent,
    encoder: ColorEncoder,
    scene: Scene,
    max_cached_vertices: usize,
    /// `true` if the scene holds all data.
    is_kept: bool,
    level: LevelId,
    vertices: u64,
    items: u64,
    skipped_vertices: u64,
    /// Total length of all lines on a picture with one pixel per unit of the store.
    length: f64,
}

impl Survey {
    fn new(space: Space, source: Source, view: Viewpoint, options: &RenderOptions) -> Self {
        Self {
            space,
            source,
            rotation: Rotation::of(view),
            extent: Extent::EMPTY,
            encoder: ColorEncoder::new(options.range),
            scene: Scene::default(),
            max_cached_vertices: options.max_cached_vertices,
            is_kept: true,
            level: LevelId::FULL,
            vertices: 0,
            items: 0,
            skipped_vertices: 0,
            length: 0.0,
        }
    }

    /// Reads everything the query selects.
    async fn read(
        &mut self,
        dataset: &Dataset,
        query: &Query,
        report: &Report<'_>,
    ) -> Result<QueryReport, RenderError> {
        let mut failed = None;
        let declared = declared_vertices(dataset, query).await?;
        let outcome = dataset
            .batches(query, |result| match self.take(&result) {
                Ok(()) => {
                    let known = declared
                        .get(&self.level)
                        .copied()
                        .unwrap_or_default()
                        .max(self.vertices);
                    report(self.vertices, known.saturating_mul(2));
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            })
            .await?;
        match failed {
            Some(error) => Err(error),
            None => {
                self.measure_links();
                Ok(outcome)
            }
        }
    }

    fn take(&mut self, result: &QueryResult) -> Result<(), RenderError> {
        let before = self.scene.positions.len();
        let paths = self.scene.starts.len();
        self.level = result.level;
        self.scene
            .add(result, &mut self.space, &self.source, &mut self.encoder)?;
        self.vertices += result.positions.len() as u64;
        self.items += result
            .parts
            .as_ref()
            .map_or(0, |parts| parts.objects.len() as u64);
        self.items += result.links.as_ref().map_or(0, |links| links.len() as u64);
        let new = self.scene.positions.get(before..).unwrap_or_default();
        for at in new {
            let rotated = self.rotation.apply(*at);
            if rotated.iter().all(|part| part.is_finite()) {
                self.extent.add(rotated);
            } else {
                self.skipped_vertices += 1;
            }
        }
        if self.scene.form == Form::Paths {
            let spans = self
                .scene
                .starts
                .get(paths.saturating_sub(1)..)
                .unwrap_or_default();
            for span in spans.windows(2) {
                let [start, end] = *span else { continue };
                let path = self.scene.positions.get(start..end).unwrap_or_default();
                let steps = path.windows(2).filter_map(|pair| match pair {
                    [a, b] => Some(flat_length(&self.rotation, *a, *b)),
                    _ => None,
                });
                self.length += steps.sum::<f64>();
            }
        }
        if self.scene.links.len() / LINKS_OF_A_VERTEX > self.max_cached_vertices {
            return Err(RenderError::TooManyVertices {
                max: self.max_cached_vertices,
            });
        }
        if !self.is_kept {
            // These links refer to vertices that are no longer cached.
            if self.scene.form == Form::Edges || self.scene.form == Form::Faces {
                return Err(RenderError::TooManyVertices {
                    max: self.max_cached_vertices,
                });
            }
            self.scene.clear();
        } else if self.scene.positions.len() > self.max_cached_vertices {
            if matches!(self.scene.form, Form::Edges | Form::Faces) {
                return Err(RenderError::TooManyVertices {
                    max: self.max_cached_vertices,
                });
            }
            self.is_kept = false;
            self.scene.clear();
        }
        Ok(())
    }

    fn measure_links(&mut self) {
        if self.scene.form != Form::Edges {
            return;
        }
        for link in self.scene.links.chunks_exact(self.scene.ends.max(1)) {
            let [a, b] = *link else { continue };
            let at = |row: u32| {
                usize::try_from(row)
                    .ok()
                    .and_then(|row| self.scene.positions.get(row))
            };
            if let (Some(a), Some(b)) = (at(a), at(b)) {
                self.length += flat_length(&self.rotation, *a, *b);
            }
        }
    }

    /// Returns the width of lines and points in samples, chosen by the amount of data so that the
    /// picture is neither sparse nor crowded. `unit` is a unit of text in samples.
    fn stroke(&self, camera: &Camera, window: &Window, unit: f32) -> f32 {
        let area = f64::from(window.size[0]) * f64::from(window.size[1]);
        let unit = f64::from(unit);
        let samples = match self.scene.form {
            Form::Points => {
                let each = area * 2.4 / self.vertices.max(1) as f64;
                each.sqrt().clamp(1.8 * unit, 11.0 * unit)
            }
            _ => {
                let length = self.length * f64::from(camera.scale);
                (area * 0.9 / length.max(1.0)).clamp(1.35 * unit, 3.8 * unit)
            }
        };
        samples as f32
    }
}

/// Returns the length of a line in the plane of the picture.
fn flat_length(rotation: &Rotation, from: [f32; 3], to: [f32; 3]) -> f64 {
    let [x, y, _] = rotation.apply(minus(to, from));
    let length = f64::from(x.hypot(y));
    if length.is_finite() { length } else { 0.0 }
}

/// Reads everything a second time and draws it batch by batch: calls `each` with a batch and the
/// number of its vertices.
async fn again(
    dataset: &Dataset,
    query: &Query,
    survey: &mut Survey,
    mut each: impl FnMut(&Scene, u64) + Send,
) -> Result<(), RenderError> {
    survey.encoder.freeze_statistics();
    survey.scene.clear();
    let mut failed = None;
    let drawn = dataset.batches(query, |result| {
        let Survey {
            scene,
            space,
            source,
            encoder,
            ..
        } = &mut *survey;
        match scene.add(&result, space, source, encoder) {
            Ok(()) => {
                each(scene, result.positions.len() as u64);
                scene.clear();
                ControlFlow::Continue(())
            }
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    drawn.await?;
    failed.map_or(Ok(()), Err)
}
