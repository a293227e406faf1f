//! `zvf info --plot`.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use zvf::{Dataset, StoreInfo};
use zvf_render::{Plot, level_statistics};

use crate::formats;

/// The name of a file that plots are written as.
pub(super) fn file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_known = ends_in(&path, "png") || ends_in(&path, "svg");
    if !is_known {
        return Err("plots are written as .png or .svg".to_owned());
    }
    formats::check_writable(&path).map_err(|error| error.to_string())?;
    Ok(path)
}

fn ends_in(path: &Path, end: &str) -> bool {
    path.extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(end))
}

/// Draws how a store is cut up.
pub(super) async fn draw(
    dataset: &Dataset,
    info: &StoreInfo,
    file: &Path,
) -> Result<(), Box<dyn Error>> {
    let levels = level_statistics(dataset, info).await?;
    let title = Path::new(dataset.address()).file_name();
    let title = title.map_or(dataset.address().into(), |name| name.to_string_lossy());
    let plot = Plot::new(&title, &levels);
    let bytes = match ends_in(file, "svg") {
        true => plot.svg().into_bytes(),
        false => plot.picture().png(),
    };
    Ok(formats::write_bytes(file, &bytes)?)
}
