//! Servers of stores for the page of the package, and for Neuroglancer.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use tokio::sync::oneshot;
use zvf::{Dataset, Follow};
use zvf_model::error_chain::error_chain;
use zvf_serve::{
    LayerError, LayerSource, PageReport, ServeError, ServeOptions, Server, VolumePlacement,
    VolumePlacementError, store_name,
};

use crate::{
    dataset::PyDataset,
    dense::{OpenArrayError, is_nifti, open_array, open_nifti},
    engine,
    errors::{IntoException, exception},
    options::{Keywords, from_json},
    progress::ProgressCallback,
};

/// The port that is tried first, so that links stay valid.
const PORT: u16 = 9393;
/// Bytes that one query may take.
const BUDGET: u64 = 160 << 20;
/// Bytes of decoded cells that are kept for each store.
const CACHE: u64 = 16 << 20;
/// Edge of a voxel in metres, unless it is known.
const VOXEL_EDGE: f64 = 1e-3;
/// Extensions of dense arrays.
const DENSE: [&str; 6] = [".tet", ".b2nd", ".cat", ".npy", ".nii", ".nii.gz"];

/// A running server. `zvf.Server` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "Server")]
pub(crate) struct PyServer {
    address: String,
    link: String,
    page_link: String,
    state: serde_json::Value,
    notes: Vec<String>,
    report: PageReport,
    running: Mutex<Option<RunningServer>>,
}

struct RunningServer {
    /// Ends the server when it is dropped.
    stop: oneshot::Sender<()>,
    /// Completes when the server has ended.
    ended: oneshot::Receiver<()>,
}

#[pymethods]
impl PyServer {
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    #[getter]
    fn link(&self) -> &str {
        &self.link
    }

    #[getter]
    fn page_link(&self) -> &str {
        &self.page_link
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Returns what the page tells about itself as JSON; an empty text before it does.
    fn page_report(&self) -> String {
        self.report.json()
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.state)
    }

    /// Ends the server, and waits for the responses that it has begun.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(RunningServer { stop, ended }) = running.take() else {
            return Ok(());
        };
        drop(running);
        drop(stop);
        engine::run(py, async {
            // The sender is dropped where the server ends with its runtime.
            let _ = ended.await;
            Ok::<_, PyErr>(())
        })
    }
}

/// Serves stores and dense arrays, each an open store or an address.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "extracted from a list")]
pub(crate) fn serve(
    py: Python<'_>,
    stores: Vec<Bound<'_, PyAny>>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyServer> {
    let mut given = Keywords::new(keywords)?;
    let progress = ProgressCallback::new(given.take("progress"));
    let edge: Option<f64> = given.get("voxel_size")?;
    if edge.is_some_and(|edge| !(edge.is_finite() && edge > 0.0)) {
        return Err(PyValueError::new_err("voxel_size must be a length above 0"));
    }
    let port: Option<u16> = given.get("port")?;
    let is_page = given.get("page")?.unwrap_or(false);
    let host = match given.get::<String>("bind")? {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => text.parse().map_err(|_| {
            PyValueError::new_err(format!(
                "bind is {text:?}; use the IP address of an interface"
            ))
        })?,
    };
    let mut options = ServeOptions::new()
        .token(given.get("token")?)
        .hosts(given.get("hosts")?.unwrap_or_default())
        .origins(given.get("origins")?.unwrap_or_default())
        .client(given.get::<PathBuf>("client")?);
    if let Some(viewer) = given.get::<String>("viewer")? {
        options = options.viewer(viewer);
    }
    given.finish()?;
    let stores = stores
        .iter()
        .map(|store| match store.cast::<PyDataset>() {
            Ok(dataset) => Ok(ServedStore::Open {
                address: dataset.get().address().to_owned(),
                options: dataset.get().options().clone(),
            }),
            Err(_) => store.extract().map(ServedStore::Address),
        })
        .collect::<PyResult<Vec<_>>>()?;
    let counter = progress.counter();
    let report = move |done, total| {
        if let Some(counter) = &counter {
            counter(done, total);
        }
    };
    let work = || async {
        let bind = async |port| {
            let options = options.clone().bind(SocketAddr::new(host, port));
            let mut sources = Vec::with_capacity(stores.len());
            for store in &stores {
                sources.push(if is_page {
                    store.objects().await?
                } else {
                    store.open(edge).await?
                });
            }
            Ok::<_, ServeFailure>(Server::bind(sources, &options, &report).await?)
        };
        match bind(port.unwrap_or(PORT)).await {
            Err(ServeFailure::Serve(ServeError::Bind { .. })) if port.is_none() => bind(0).await,
            bound => bound,
        }
    };
    let server = engine::run_with_progress(py, work, &progress)?;
    let state = serde_json::from_str(&server.state());
    let found = PyServer {
        address: server.address().to_owned(),
        link: server.link(),
        page_link: server.page_link(),
        state: state.map_err(|error| crate::errors::unusable(&error))?,
        notes: server.notes(),
        report: server.page_report(),
        running: Mutex::new(None),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let (end, ended) = oneshot::channel();
    let work = server.run(async {
        // A handle that is collected ends its server as well.
        let _ = stopped.await;
    });
    engine::spawn(work, move |()| {
        // Nothing may wait for the end.
        let _ = end.send(());
    })?;
    *found.running.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(RunningServer { stop, ended });
    Ok(found)
}

/// A store to serve.
enum ServedStore {
    Open {
        address: String,
        options: zvf::OpenOptions,
    },
    Address(String),
}

impl ServedStore {
    /// Opens a store whose objects the page reads.
    async fn objects(&self) -> Result<LayerSource, ServeFailure> {
        let (address, options) = match self {
            Self::Open { address, options } => (address, options.clone()),
            Self::Address(address) => (address, zvf::OpenOptions::new()),
        };
        let dataset = Dataset::open_with(address, &options.follow(Follow::Never)).await?;
        let store = dataset.store().clone();
        Ok(LayerSource::objects(store_name(address), store))
    }

    async fn open(&self, edge: Option<f64>) -> Result<LayerSource, ServeFailure> {
        let (address, options) = match self {
            Self::Open { address, options } => (address, options.clone()),
            Self::Address(address) => {
                let lower = address.to_ascii_lowercase();
                let mut ends = DENSE.iter().copied();
                if let Some(end) = ends.find(|end| lower.ends_with(end)) {
                    let name = address.get(..address.len().saturating_sub(end.len()));
                    return volume(store_name(name.unwrap_or(address)), address, edge);
                }
                (address, zvf::OpenOptions::new())
            }
        };
        let options = options.budget(BUDGET).cache(CACHE).follow(Follow::Never);
        match Dataset::open_with(address, &options).await {
            Ok(dataset) => Ok(LayerSource::store(store_name(address), dataset)),
            // A folder with a Zarr array.
            Err(error) if Path::new(address).is_dir() => {
                volume(store_name(address), address, edge).map_err(|_| error.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn volume(name: String, path: &str, edge: Option<f64>) -> Result<LayerSource, ServeFailure> {
    if edge.is_none() && is_nifti(path) {
        let volume = open_nifti(path, None)?;
        let world = volume.voxel_to_world().map_err(OpenArrayError::from)?;
        let (rows, _) = world.rows().as_chunks();
        let rows: [[f64; 4]; 3] = rows.try_into().map_err(|_| ServeFailure::Axes)?;
        let map = VolumePlacement::affine(rows, volume.metres_per_unit())?;
        return Ok(LayerSource::volume(name, Arc::new(volume), map));
    }
    let array = open_array(path, None, None)?;
    let map = VolumePlacement::cubes(edge.unwrap_or(VOXEL_EDGE));
    Ok(LayerSource::volume(name, Arc::from(array), map))
}

/// The reason why nothing is served.
enum ServeFailure {
    Store(zvf::Error),
    Array(OpenArrayError),
    Placement(VolumePlacementError),
    /// The affine of a volume is not for three axes.
    Axes,
    Serve(ServeError),
}

impl From<zvf::Error> for ServeFailure {
    fn from(error: zvf::Error) -> Self {
        Self::Store(error)
    }
}

impl From<OpenArrayError> for ServeFailure {
    fn from(error: OpenArrayError) -> Self {
        Self::Array(error)
    }
}

impl From<VolumePlacementError> for ServeFailure {
    fn from(error: VolumePlacementError) -> Self {
        Self::Placement(error)
    }
}

impl From<ServeError> for ServeFailure {
    fn from(error: ServeError) -> Self {
        Self::Serve(error)
    }
}

impl IntoException for ServeFailure {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let input = |text: &str| exception(py, "InputError", text, None, None);
        match self {
            Self::Store(error) => error.into_exception(py),
            Self::Array(error) => error.into_exception(py),
            Self::Placement(error) => input(&error_chain(&error)),
            Self::Axes => input("only volumes of three axes can be served"),
            Self::Serve(ServeError::Source { name, source }) => match source.downcast() {
                Ok(error) => match *error {
                    LayerError::Store(error) => error.into_exception(py),
                    error => input(&format!("{name}: {}", error_chain(&error))),
                },
                Err(source) => input(&format!("{name}: {}", error_chain(&*source))),
            },
            Self::Serve(error @ ServeError::Bind { .. }) => {
                exception(py, "AccessError", &error_chain(&error), None, None)
            }
            Self::Serve(error) => input(&error_chain(&error)),
        }
    }
}
