//! A store as a picture.

use core::ops::ControlFlow;

use zvf::{
    Dataset, Query,
    model::{level::LevelId, root::GeometryKind},
    query::{Budget, LevelChoice, QueryError, QueryReport, QueryResult, Selection, geometry::Mode},
};

use crate::{
    annotate::{self, Notes},
    draw::draw,
    error::RenderError,
    frame::Frame,
    options::{DEFAULT_VERTEX_BUDGET, RenderOptions},
    paint::{Paint, Source, Tints},
    picture::Picture,
    scale,
    scene::{Form, Scene, Space},
    view::{Camera, Extent, Turn, Viewpoint, Window, minus},
};

/// Ends of links that are kept for each vertex that may be: meshes have six.
const LINKS_OF_A_VERTEX: usize = 12;
/// Sides of a picture.
const SIDES: core::ops::RangeInclusive<usize> = 64..=16384;
/// Dots of a picture.
const MOST_DOTS: usize = 1 << 25;
/// Samples of a frame, 8 bytes each.
const MOST_SAMPLES: usize = 20_000_000;

/// A picture, and what is in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct RenderOutput {
    /// The picture.
    pub picture: Picture,
    /// The levels that were drawn, the coarsest first.
    pub levels: Vec<LevelId>,
    /// Vertices that were found.
    pub vertices: u64,
    /// Paths, edges or faces that were found; 0 of points.
    pub items: u64,
    /// Vertices without a place, which are not drawn: not a number, or beyond what can be drawn.
    pub skipped_vertices: u64,
    /// Defects of the store that were got around, and levels that are behind.
    pub notes: Vec<String>,
}

/// Draws what is in a store.
///
/// Memory is bounded by [`RenderOptions::max_cached_vertices`], the pieces that the store is read in, and
/// 8 bytes a sample of the picture, nine samples a dot or fewer. Links take as much again as
/// their vertices, and meshes three times that.
///
/// ```
/// # use zvf::build::{Design, Geometry, GeometryKind, Numbers};
/// use zvf::Dataset;
/// use zvf_render::{RenderOptions, Viewpoint, render};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = Numbers::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
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
/// [`RenderError`] when the store cannot be read, has nothing to draw, or the picture would be
/// too large.
pub async fn render(
    dataset: &Dataset,
    options: &RenderOptions,
) -> Result<RenderOutput, RenderError> {
    let (width, height) = (options.width, options.height);
    let fine = samples_of_a_dot(width, height)?;
    let source = source(dataset, options);
    let axes = drawn_axes(dataset);
    let is_flat = axes.iter().flatten().count() < 3;
    let view = options.view.unwrap_or(if is_flat {
        Viewpoint::AXIAL
    } else {
        Viewpoint::ISO
    });
    let (mut survey, query, outcome) = survey(dataset, options, axes, source, view).await?;
    let paint = survey.tints.paint(&survey.source, options)?;

    let zoom = annotate::zoom(width, height);
    let root = dataset.root();
    let of_axis = |at: Option<usize>| at.and_then(|at| root.axes.get(at));
    let mut units = axes
        .iter()
        .flatten()
        .map(|at| root.axes.get(*at).and_then(|axis| axis.unit.as_deref()));
    let unit = units.next().flatten();
    let is_one_unit = units.all(|other| other == unit);
    let levels = levels(&outcome, survey.level);
    let notes = Notes {
        size: [width as f32 / zoom, height as f32 / zoom],
        background: options.background,
        title: options.title.as_deref().unwrap_or_default(),
        subtitle: subtitle(&survey, &levels),
        axes: axes.map(|at| of_axis(at).map(|axis| axis.name.as_str())),
        unit,
        has_scale: is_one_unit && !view.is_perspective,
    };
    let window = match !options.annotations {
        true => Window {
            from: [8.0; 2],
            size: notes.size.map(|side| side - 16.0),
        },
        false => notes.window(&paint),
    };
    let dots = |by: f32| Window {
        from: window.from.map(|at| at * zoom * by),
        size: window.size.map(|side| (side * zoom * by).max(1.0)),
    };
    let fitted = |window: Window| match view.is_perspective && survey.is_kept {
        true => {
            Camera::fit(view, &survey.extent, &window).tightened(&survey.scene.positions, &window)
        }
        false => Camera::fit(view, &survey.extent, &window),
    };
    let (camera, flat) = (fitted(dots(fine as f32)), fitted(dots(1.0)));
    let stroke = match options.stroke {
        Some(dots) => dots * fine as f32,
        None => survey.stroke(&camera, &dots(fine as f32), zoom * fine as f32),
    };
    let mut frame = Frame::new(width, height, fine);
    match survey.is_kept {
        true => draw(&mut frame, &camera, &paint, &survey.scene, stroke),
        false => {
            again(
                dataset,
                &query,
                &mut survey,
                &mut frame,
                &camera,
                &paint,
                stroke,
            )
            .await?;
        }
    }
    let mut picture = frame.picture(&camera, options.background);
    if options.annotations {
        picture.draw(&notes.sheet(&paint, &flat, zoom), zoom);
    }
    Ok(RenderOutput {
        picture,
        levels,
        vertices: survey.vertices,
        items: survey.items,
        skipped_vertices: survey.skipped_vertices,
        notes: outcome.notes,
    })
}

/// How many samples a dot has along each side.
fn samples_of_a_dot(width: usize, height: usize) -> Result<usize, RenderError> {
    let is_size = SIDES.contains(&width) && SIDES.contains(&height);
    let dots = width.checked_mul(height).filter(|dots| *dots <= MOST_DOTS);
    let dots = dots.filter(|_| is_size);
    let dots = dots.ok_or(RenderError::Size { width, height })?;
    let fits = |fine: &usize| fine * fine * dots <= MOST_SAMPLES;
    Ok((1..=3_usize).rev().find(fits).unwrap_or(1))
}

/// What gives colours, as is asked or by what the store has.
fn source(dataset: &Dataset, options: &RenderOptions) -> Source {
    use GeometryKind::{Graph, Line, Mesh, Polyline, Skeleton, Streamline};
    let kinds = &dataset.root().geometry_kinds;
    let is_any = |these: &[GeometryKind]| these.iter().any(|kind| kinds.contains(kind));
    let is_path = is_any(&[Line, Polyline, Streamline]) && !is_any(&[Mesh]);
    Source::of(&options.color_by, is_any(&[Skeleton, Graph]), is_path)
}

/// Looks at all that is to be drawn.
async fn survey(
    dataset: &Dataset,
    options: &RenderOptions,
    axes: [Option<usize>; 3],
    source: Source,
    view: Viewpoint,
) -> Result<(Survey, Query, QueryReport), RenderError> {
    let mut survey = Survey::new(Space::new(axes), source, view, options.max_cached_vertices);
    let mut query = query(options, &survey.source);
    let outcome = match survey.look(dataset, &query).await {
        // No level has so few: the coarsest it is.
        Err(RenderError::Store(zvf::Error::Query(QueryError::OverVertices { .. })))
            if options.level.is_none() =>
        {
            survey = Survey::new(
                Space::new(axes),
                survey.source,
                view,
                options.max_cached_vertices,
            );
            query.level = LevelChoice::Vertices(DEFAULT_VERTEX_BUDGET);
            survey.look(dataset, &query).await?
        }
        looked => looked?,
    };
    if survey.extent.is_empty() {
        return Err(RenderError::Empty(match survey.vertices {
            0 => "nothing was found",
            _ => "no vertex has a place",
        }));
    }
    Ok((survey, query, outcome))
}

/// The first three axes of space.
fn drawn_axes(dataset: &Dataset) -> [Option<usize>; 3] {
    let axes = dataset.root().axes.iter().enumerate();
    let is_space = |kind: &Option<String>| kind.as_deref().is_none_or(|kind| kind == "space");
    let mut space = axes
        .filter(|(_, axis)| is_space(&axis.kind))
        .map(|(at, _)| at);
    [space.next(), space.next(), space.next()]
}

fn query(options: &RenderOptions, source: &Source) -> Query {
    let level = options.level.unwrap_or(match options.bbox {
        // How much of a level is in a box takes counting.
        Some(_) => LevelChoice::Budget(Budget::new(DEFAULT_VERTEX_BUDGET)),
        None => LevelChoice::Vertices(DEFAULT_VERTEX_BUDGET),
    });
    let columns = match source {
        Source::Attribute(scope, name) => Selection::Named(vec![(*scope, name.clone())]),
        _ => Selection::none(),
    };
    let mut query = Query::new().level(level).columns(columns);
    if let Some(bbox) = &options.bbox {
        query = query.region(*bbox).mode(Mode::Clip);
    }
    query.geometry.clone_from(&options.geometry);
    query.owners = source.needs_objects();
    query
}

fn levels(outcome: &QueryReport, only: LevelId) -> Vec<LevelId> {
    match outcome.levels.is_empty() {
        true => vec![only],
        false => outcome.levels.iter().map(|used| used.level).collect(),
    }
}

fn subtitle(survey: &Survey, levels: &[LevelId]) -> String {
    let levels: Vec<String> = levels.iter().map(LevelId::to_string).collect();
    let vertices = scale::grouped(survey.vertices);
    let items = scale::grouped(survey.items);
    let found = match survey.scene.form {
        Form::Points => format!("{vertices} points"),
        Form::Paths => format!("{items} paths, {vertices} vertices"),
        Form::Edges => format!("{items} edges, {vertices} vertices"),
        Form::Faces => format!("{items} faces, {vertices} vertices"),
    };
    format!("{found} · level {}", levels.join(", "))
}

/// What has to be known before anything is drawn.
struct Survey {
    space: Space,
    source: Source,
    turn: Turn,
    extent: Extent,
    tints: Tints,
    scene: Scene,
    max_cached_vertices: usize,
    /// Whether the scene has all of it.
    is_kept: bool,
    level: LevelId,
    vertices: u64,
    items: u64,
    skipped_vertices: u64,
    /// How long all lines are on a picture whose dots are units of the store.
    length: f64,
}

impl Survey {
    fn new(space: Space, source: Source, view: Viewpoint, max_cached_vertices: usize) -> Self {
        Self {
            space,
            source,
            turn: Turn::of(view),
            extent: Extent::EMPTY,
            tints: Tints::default(),
            scene: Scene::default(),
            max_cached_vertices,
            is_kept: true,
            level: LevelId::FULL,
            vertices: 0,
            items: 0,
            skipped_vertices: 0,
            length: 0.0,
        }
    }

    /// Reads all that a query selects.
    async fn look(&mut self, dataset: &Dataset, query: &Query) -> Result<QueryReport, RenderError> {
        let mut failed = None;
        let outcome = dataset.batches(query, |answer| match self.take(&answer) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        });
        let outcome = outcome.await?;
        match failed {
            Some(error) => Err(error),
            None => {
                self.measure_links();
                Ok(outcome)
            }
        }
    }

    fn take(&mut self, answer: &QueryResult) -> Result<(), RenderError> {
        let before = self.scene.positions.len();
        let paths = self.scene.starts.len();
        self.level = answer.level;
        self.scene
            .add(answer, &mut self.space, &self.source, &mut self.tints)?;
        self.vertices += answer.positions.len() as u64;
        self.items += answer
            .parts
            .as_ref()
            .map_or(0, |parts| parts.objects.len() as u64);
        self.items += answer.links.as_ref().map_or(0, |links| links.len() as u64);
        let new = self.scene.positions.get(before..).unwrap_or_default();
        for at in new {
            let turned = self.turn.apply(*at);
            match turned.iter().all(|part| part.is_finite()) {
                true => self.extent.add(turned),
                false => self.skipped_vertices += 1,
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
                    [a, b] => Some(flat_length(&self.turn, *a, *b)),
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
            // Links of vertices that are gone.
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
                self.length += flat_length(&self.turn, *a, *b);
            }
        }
    }

    /// Samples that lines are wide and points across, so that they cover the picture neither
    /// hardly nor many times over. `unit` is a unit of text in samples.
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

/// How long a line is as it is seen.
fn flat_length(turn: &Turn, from: [f32; 3], to: [f32; 3]) -> f64 {
    let [x, y, _] = turn.apply(minus(to, from));
    let length = f64::from(x.hypot(y));
    if length.is_finite() { length } else { 0.0 }
}

/// Reads all once more, and draws it as it comes.
async fn again(
    dataset: &Dataset,
    query: &Query,
    survey: &mut Survey,
    frame: &mut Frame,
    camera: &Camera,
    paint: &Paint,
    stroke: f32,
) -> Result<(), RenderError> {
    survey.tints.settle();
    survey.scene.clear();
    let mut failed = None;
    let drawn = dataset.batches(query, |answer| {
        let Survey {
            scene,
            space,
            source,
            tints,
            ..
        } = &mut *survey;
        match scene.add(&answer, space, source, tints) {
            Ok(()) => {
                draw(frame, camera, paint, scene, stroke);
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
