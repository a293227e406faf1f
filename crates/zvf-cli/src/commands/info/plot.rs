//! `zvf info --plot`: charts of levels, chunks and fragments.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use zvf::{Dataset, StoreInfo};
use zvf_render::{Plot, level_statistics};

/// Parses the name of a plot file.
pub(super) fn file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_known = ends_in(&path, "png") || ends_in(&path, "svg");
    if !is_known {
        return Err("the file name must end in .png or .svg".to_owned());
    }
    zvf_files::check_writable(&path).map_err(|error| error.to_string())?;
    Ok(path)
}

fn ends_in(path: &Path, end: &str) -> bool {
    path.extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(end))
}

/// Draws the sizes of levels, chunks and fragments.
pub(super) async fn draw(
    dataset: &Dataset,
    info: &StoreInfo,
    file: &Path,
) -> Result<(), Box<dyn Error>> {
    let levels = level_statistics(dataset, info).await?;
    let title = Path::new(dataset.address())
        .file_name()
        .map_or(dataset.address().into(), |name| name.to_string_lossy());
    let plot = Plot::new(&title, &levels);
    let bytes = if ends_in(file, "svg") {
        plot.svg().into_bytes()
    } else {
        plot.picture().png()
    };
    Ok(zvf_files::write_bytes(file, &bytes)?)
}
