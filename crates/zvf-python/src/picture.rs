//! Pictures of stores.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes, types::PyDict};
use zvf::{LevelChoice, LevelId, Mode, Query, VertexBudget};
use zvf_render::{
    Background, Colormap, RenderOptions, RenderOutput, Viewpoint, render_with_progress,
};

use crate::{
    dataset::PyDataset, engine, errors::unusable, options::Keywords, progress::ProgressCallback,
    query::selected,
};

/// A picture. `zvf.Picture` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "Picture")]
pub(crate) struct PyPicture(RenderOutput);

#[pymethods]
impl PyPicture {
    /// Encodes the picture.
    fn png<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let png = py.detach(|| self.0.picture.png());
        PyBytes::new(py, &png)
    }

    /// Copies the pixels into an array of rows, columns and colours.
    fn pixels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let picture = &self.0.picture;
        let bytes = PyArray1::from_slice(py, picture.pixels().as_flattened());
        let pixels = bytes.reshape([picture.height(), picture.width(), 3])?;
        Ok(pixels.into_any())
    }

    /// Returns what was drawn.
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let output = &self.0;
        let found = PyDict::new(py);
        let levels = output.levels.iter().map(|level| level.number());
        found.set_item("width", output.picture.width())?;
        found.set_item("height", output.picture.height())?;
        found.set_item("levels", levels.collect::<Vec<_>>())?;
        found.set_item("vertices", output.vertices)?;
        found.set_item("items", output.items)?;
        found.set_item("skipped_vertices", output.skipped_vertices)?;
        found.set_item("colors", &output.colors)?;
        found.set_item("notes", &output.notes)?;
        Ok(found)
    }
}

/// Draws a store.
#[pyfunction]
pub(crate) fn draw(
    py: Python<'_>,
    dataset: &Bound<'_, PyDataset>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyPicture> {
    let mut given = Keywords::new(keywords)?;
    let progress = ProgressCallback::new(given.take("progress"));
    let options = options(&mut given)?;
    given.finish()?;
    let dataset = dataset.get().current();
    let counter = progress.counter();
    // Drawing computes without an await.
    let drawn = engine::run_on_own_thread(py, &progress, async move {
        let report = |done, of| {
            if let Some(counter) = &counter {
                counter(done, of);
            }
        };
        render_with_progress(&dataset, &options, &report).await
    })?;
    Ok(PyPicture(drawn))
}

/// Takes the options of `zvf render`.
fn options(given: &mut Keywords<'_>) -> PyResult<RenderOptions> {
    let mut options = RenderOptions::default();
    if let Some((width, height)) = given.get("size")? {
        (options.width, options.height) = (width, height);
    }
    if let Some(text) = given.get::<String>("view")? {
        options.view = Some(text.parse().map_err(|error| unusable(&error))?);
    }
    if given.get("perspective")?.unwrap_or(false) {
        let view = options.view.unwrap_or(Viewpoint::ISO);
        options.view = Some(view.perspective());
    }
    if let Some(text) = given.get::<String>("color")? {
        let Ok(color) = text.parse();
        options.color_by = color;
    }
    let palette = |word: &str| match word {
        "viridis" => Some(Colormap::Viridis),
        "cividis" => Some(Colormap::Cividis),
        "inferno" => Some(Colormap::Inferno),
        _ => None,
    };
    if let Some(palette) = given.word("palette", palette, "viridis, cividis or inferno")? {
        options.colormap = palette;
    }
    options.range = given.get("range")?;
    if options
        .range
        .is_some_and(|(low, high): (f64, f64)| !(low.is_finite() && high.is_finite() && low < high))
    {
        return Err(PyValueError::new_err(
            "range is two numbers, the lower first",
        ));
    }
    let background = |word: &str| match word {
        "dark" => Some(Background::Dark),
        "light" => Some(Background::Light),
        _ => None,
    };
    if let Some(background) = given.word("background", background, "dark or light")? {
        options.background = background;
    }
    let level: Option<u32> = given.get("level")?;
    let budget: Option<u64> = given.get("budget")?;
    options.level = match (level, budget) {
        (Some(_), Some(_)) => return Err(PyValueError::new_err("give a level or a budget")),
        (Some(level), None) => Some(LevelChoice::Number(LevelId::new(level))),
        (None, Some(budget)) => Some(VertexBudget::new(budget).into()),
        (None, None) => None,
    };
    let is_box = given.has("bbox") && !given.has("mode");
    if is_box {
        // The picture shows the box.
        options.selection = Query::new().mode(Mode::Clip);
    }
    selected(given, &mut options.selection)?;
    options.selected = given.get("selected")?;
    options.flip_y = given.get("flip_y")?.unwrap_or(false);
    options.geometry = given.get("geometry")?;
    options.stroke = given.get("stroke")?;
    if options
        .stroke
        .is_some_and(|dots: f32| !(0.1..=200.0).contains(&dots))
    {
        return Err(PyValueError::new_err(
            "the stroke must be 0.1 to 200 pixels",
        ));
    }
    options.title = given.get("title")?;
    options.depth_cue = given.get("depth_cue")?.unwrap_or(true);
    options.annotations = given.get("annotations")?.unwrap_or(true);
    Ok(options)
}
