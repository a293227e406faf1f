//! `zvf serve`: serves stores to Neuroglancer.

use std::{
    error::Error,
    fs,
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use zvf::{Dataset, Follow, OpenOptions};
use zvf_serve::{
    HOSTED_VIEWER, LayerSource, ServeError, ServeOptions, Server, VolumePlacement, store_name,
};

use zvf_dense::nifti::NiftiArray;

use crate::{
    arguments::values,
    dense::{self, MemoryArgs},
    outcome::CommandOutcome,
    progress::{ProgressLine, ProgressMeter},
};

/// The port that is tried first, so that links stay valid.
pub(super) const PORT: u16 = 9393;
/// Time for the threads that read files at the end.
const END_TIME: Duration = Duration::from_secs(1);
/// The least memory with which stores can be shown.
const MIN_MEMORY: u64 = 64 << 20;
/// Length of a unit of `--affine` in metres.
const MILLIMETRE: f64 = 1e-3;
/// Edge of a voxel in metres, unless it is known.
const VOXEL_EDGE: f64 = 1e-3;
/// Extensions of dense arrays.
const DENSE: [&str; 6] = [".tet", ".b2nd", ".cat", ".npy", ".nii", ".nii.gz"];

/// Serve stores to Neuroglancer, and print a link that shows them
///
/// Points, lines, streamlines and edges of graphs become annotations; paths, groups of paths,
/// skeletons and graphs become skeletons; meshes become meshes; dense arrays with three axes become
/// volumes. Layers are computed when the viewer requests them, and show changes of a store when the
/// page is reloaded. Stores whose boxes overlap are drawn in one panel, and others beside each
/// other. Ctrl-C ends the server.
///
/// The server accepts requests only from this machine, and only from pages of the viewer's address,
/// unless --bind and --allow-origin allow others. It never writes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf serve tracts.zv scan.nii.gz
  zvf serve *.zv --client neuroglancer/static/client
  zvf serve tracts.zv --bind 0.0.0.0 --token 7c9e6679f7425")]
pub(crate) struct ServeArgs {
    /// Stores and dense arrays: folders, .zip files, addresses that this build supports.
    #[arg(required = true)]
    stores: Vec<String>,
    /// Address to listen on. 0.0.0.0 makes the stores readable for every machine that reaches this
    /// one, and needs --token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Port to listen on; by default 9393, or a free one if it is taken.
    #[arg(long)]
    port: Option<u16>,
    /// Secret that the path of each request must begin with; printed links contain it.
    #[arg(long, value_name = "TEXT")]
    token: Option<String>,
    /// Name of this machine, used in links and accepted in requests.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Origin whose pages may read responses, besides that of the viewer; * allows all.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Address of the Neuroglancer instance that the link opens.
    #[arg(long, value_name = "URL", default_value = HOSTED_VIEWER)]
    neuroglancer: String,
    /// Folder of a Neuroglancer client to serve, so that no internet is needed: static/client in the
    /// Python package neuroglancer.
    #[arg(long, value_name = "DIR", conflicts_with = "neuroglancer")]
    client: Option<PathBuf>,
    /// Edge of a voxel of dense arrays, with a unit: 0.5mm, 40nm. By default, the header places the
    /// voxels of a NIfTI volume, and those of other arrays have an edge of 1 mm.
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    voxel_size: Option<f64>,
    /// File that places the voxels of dense arrays without a header of their own: a NIfTI volume, or
    /// a text of 3 or 4 rows of 4 numbers that maps the index of a voxel to a position in mm.
    #[arg(long, value_name = "FILE", conflicts_with = "voxel_size")]
    affine: Option<PathBuf>,
    /// Approximate memory of the server, such as 300MB or 2GiB. Larger skeletons and meshes are
    /// encoded in temporary files.
    #[arg(long, value_name = "SIZE", default_value = "300MiB", value_parser = size)]
    memory: u64,
    /// Print the link, the address and the state of the viewer as one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress, and print nothing but the link and errors.
    #[arg(long)]
    quiet: bool,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
}

/// Serves until a signal.
pub(crate) fn run(arguments: &ServeArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    until_signal(serve(arguments))
}

/// Runs a server until it ends.
pub(super) fn until_signal(
    server: impl Future<Output = Result<CommandOutcome, Box<dyn Error>>>,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(16)
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(server);
    // A disk that does not respond does not hold up the end.
    runtime.shutdown_timeout(END_TIME);
    outcome
}

async fn serve(arguments: &ServeArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let meter = ProgressMeter::default();
    let message = format!("reading {}", arguments.stores.join(", "));
    let progress = ProgressLine::with_meter(arguments.quiet, message, meter.clone());
    let report = move |done, total| meter.set(done, total);
    let port = arguments.port.unwrap_or(PORT);
    let server = match bind(arguments, port, &report).await {
        Err(error) if arguments.port.is_none() && is_in_use(&*error) => {
            bind(arguments, 0, &report).await
        }
        bound => bound,
    }?;
    drop(progress);
    if !arguments.quiet && !arguments.json {
        for note in server.notes() {
            anstream::eprintln!("note: {note}");
        }
        if !arguments.bind.is_loopback() {
            anstream::eprintln!(
                "note: every machine that reaches this one, and knows the link, can read these \
                 stores"
            );
        }
    }
    // The reader of the line may stop the server at once.
    let stop = stop_signal()?;
    let line = if arguments.json {
        json!({
            "neuroglancer": server.link(),
            "address": server.address(),
            "state": serde_json::from_str::<serde_json::Value>(&server.state())?,
            "notes": server.notes(),
        })
        .to_string()
    } else {
        server.link()
    };
    print(&line)?;
    server.run(stop).await;
    Ok(CommandOutcome::from(String::new()))
}

/// Prints a line that another program may wait for.
pub(super) fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Opens the sources and binds the server.
async fn bind(
    arguments: &ServeArgs,
    port: u16,
    report: &(dyn Fn(u64, u64) + Send + Sync),
) -> Result<Server, Box<dyn Error>> {
    let options = ServeOptions::new()
        .memory(arguments.memory)
        .bind(SocketAddr::new(arguments.bind, port))
        .token(arguments.token.clone())
        .hosts(arguments.host.clone())
        .origins(arguments.allow_origin.clone())
        .viewer(arguments.neuroglancer.as_str())
        .client(arguments.client.clone());
    let mut sources = Vec::new();
    for store in &arguments.stores {
        sources.push(source(arguments, store).await?);
    }
    Ok(Server::bind(sources, &options, report).await?)
}

async fn source(arguments: &ServeArgs, address: &str) -> Result<LayerSource, Box<dyn Error>> {
    let lower = address.to_ascii_lowercase();
    if let Some(extension) = DENSE.iter().find(|extension| lower.ends_with(*extension)) {
        let name = store_name(&address[..address.len().saturating_sub(extension.len())]);
        return volume(arguments, &name, address);
    }
    let options = OpenOptions::default()
        .anonymous(arguments.anonymous)
        .budget(arguments.memory / 2)
        .cache(arguments.memory / 20 / u64::try_from(arguments.stores.len().max(1))?)
        .follow(Follow::Never);
    match Dataset::open_with(address, &options).await {
        Ok(dataset) => Ok(LayerSource::store(store_name(address), dataset)),
        // A folder with a Zarr array.
        Err(error) if Path::new(address).is_dir() => {
            volume(arguments, &store_name(address), address).map_err(|_| error.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn volume(arguments: &ServeArgs, name: &str, address: &str) -> Result<LayerSource, Box<dyn Error>> {
    let path = Path::new(address);
    let edge = arguments.voxel_size;
    if edge.is_none()
        && let Some(volume) = dense::nifti(path, MemoryArgs::default())?
    {
        let map = placement(&volume)?;
        return Ok(LayerSource::volume(name, Arc::new(volume), map));
    }
    let array = dense::open(path, None, MemoryArgs::default())?;
    let map = match &arguments.affine {
        Some(file) => affine(file)?,
        None => VolumePlacement::cubes(edge.unwrap_or(VOXEL_EDGE)),
    };
    Ok(LayerSource::volume(name, Arc::from(array), map))
}

/// Returns the positions of the voxels of a NIfTI volume.
fn placement(volume: &NiftiArray) -> Result<VolumePlacement, Box<dyn Error>> {
    let (rows, _) = volume.voxel_to_world()?.rows().as_chunks();
    let rows: [[f64; 4]; 3] = rows.try_into()?;
    Ok(VolumePlacement::affine(rows, volume.metres_per_unit())?)
}

/// Reads the positions of voxels from a NIfTI volume, or from a text with a matrix.
fn affine(file: &Path) -> Result<VolumePlacement, Box<dyn Error>> {
    let name = file.to_string_lossy().to_ascii_lowercase();
    if [".nii", ".nii.gz"].iter().any(|end| name.ends_with(end)) {
        let volume = dense::nifti(file, MemoryArgs::default())?
            .ok_or_else(|| format!("{} is not a NIfTI volume", file.display()))?;
        return placement(&volume);
    }
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let rows = matrix(&text).ok_or_else(|| {
        format!(
            "{} is not a matrix; 3 or 4 rows of 4 numbers are needed, the last one 0 0 0 1",
            file.display()
        )
    })?;
    Ok(VolumePlacement::affine(rows, MILLIMETRE)?)
}

/// Parses 3 rows of 4 numbers, which a row 0 0 0 1 may follow.
fn matrix(text: &str) -> Option<[[f64; 4]; 3]> {
    let numbers: Vec<f64> = text
        .split(|letter: char| letter.is_whitespace() || letter == ',')
        .filter(|word| !word.is_empty())
        .map(|word| word.parse::<f64>().ok())
        .collect::<Option<_>>()?;
    let (rows, rest) = numbers.as_chunks::<4>();
    let (rows, last) = rows.split_first_chunk::<3>()?;
    let is_affine = rest.is_empty() && (last.is_empty() || last == [[0.0, 0.0, 0.0, 1.0]]);
    is_affine.then_some(*rows)
}

/// Parses the memory of the server.
fn size(text: &str) -> Result<u64, String> {
    let bytes = values::size(text).map_err(|error| error.to_string())?;
    if bytes >= MIN_MEMORY {
        Ok(bytes)
    } else {
        Err("at least 64MiB are needed".to_owned())
    }
}

pub(super) fn is_in_use(error: &(dyn Error + 'static)) -> bool {
    match error.downcast_ref() {
        Some(ServeError::Bind { source, .. }) => source.kind() == io::ErrorKind::AddrInUse,
        _ => false,
    }
}

/// Parses a length and returns it in metres.
fn length(text: &str) -> Result<f64, String> {
    let wanted = "a length with a unit, such as 0.5mm, 40nm or 2um";
    let start = text
        .find(|letter: char| letter.is_alphabetic() && letter != 'e' && letter != 'E')
        .ok_or(wanted)?;
    let (number, unit) = text.split_at(start);
    let number: f64 = number.trim().parse().map_err(|_| wanted)?;
    let unit = match unit {
        "nm" => 1e-9,
        "um" | "µm" => 1e-6,
        "mm" => 1e-3,
        "cm" => 1e-2,
        "m" => 1.0,
        _ => return Err(wanted.to_owned()),
    };
    let metres = number * unit;
    let is_length = metres.is_finite() && metres > 0.0;
    is_length.then_some(metres).ok_or_else(|| wanted.to_owned())
}

/// Handles SIGINT and SIGTERM from now on, and returns a future that waits for one of them.
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(windows)]
    {
        let mut interrupt = tokio::signal::windows::ctrl_c()?;
        Ok(async move { drop(interrupt.recv().await) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_have_three_rows() {
        let rows = [
            [1.0, 0.0, 0.0, -5.0],
            [0.0, 2.0, 0.0, 6.0],
            [0.0, 0.0, 3.0, 7.0],
        ];
        let three = "1 0 0 -5\n0 2 0 6\n0 0 3 7\n";
        assert_eq!(matrix(three), Some(rows));
        assert_eq!(matrix(&format!("{three}0,0,0,1")), Some(rows));
        for text in [
            "",
            "1 2 3",
            "1 0 0 0 0 1 0 0",
            &format!("{three}1 0 0 1"),
            "a b c d",
        ] {
            assert_eq!(matrix(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_have_units() {
        assert_eq!(length("0.5mm"), Ok(0.5e-3));
        assert_eq!(length("40 nm"), Ok(40.0 * 1e-9));
        for text in ["", "5", "mm", "5 miles", "-1mm", "0mm", "nanmm"] {
            assert!(length(text).is_err(), "{text}");
        }
    }
}
