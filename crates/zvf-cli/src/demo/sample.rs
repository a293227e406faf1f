//! The stores of the demo.

use std::{error::Error, path::Path, time::Instant};

use zvf::{
    Automatic, CreateOptions, Dataset, Existing, Levels, OpenOptions, PyramidOptions,
    build::{Axis, Compression, Design, Geometry, GeometryKind},
    validation,
};
use zvf_render::{ColorBy, Ramp, RenderOptions, View, render};

use super::{cells, neurons, surface, tracts};
use crate::output;

/// A store, how it is made, and how it is drawn.
pub(super) struct Sample {
    pub(super) file: &'static str,
    pub(super) picture: &'static str,
    title: &'static str,
    kind: GeometryKind,
    unit: &'static str,
    geometry: fn(u64) -> Geometry,
    levels: u32,
    color: &'static str,
    ramp: Ramp,
    view: View,
}

/// What was written.
pub(super) struct Made {
    pub(super) file: &'static str,
    pub(super) title: &'static str,
    /// Vertices of each level, the finest first.
    pub(super) vertices: Vec<u64>,
    pub(super) bytes: u64,
    pub(super) errors: u64,
    pub(super) seconds: f64,
}

/// What was drawn.
pub(super) struct Drawn {
    pub(super) file: &'static str,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

pub(super) const SAMPLES: &[Sample] = &[
    Sample {
        file: "tracts.zv",
        picture: "tracts.png",
        title: "Streamlines of a brain",
        kind: GeometryKind::Streamlines,
        unit: "millimeter",
        geometry: tracts::geometry,
        levels: 2,
        color: "orientation",
        ramp: Ramp::Viridis,
        view: View::new(66.0, 18.0),
    },
    Sample {
        file: "neurons.zv",
        picture: "neurons.png",
        title: "Neurons",
        kind: GeometryKind::Skeletons,
        unit: "micrometer",
        geometry: neurons::geometry,
        levels: 1,
        color: "object",
        ramp: Ramp::Viridis,
        view: View::new(18.0, 10.0),
    },
    Sample {
        file: "cells.zv",
        picture: "cells.png",
        title: "Cells of a piece of cortex",
        kind: GeometryKind::Points,
        unit: "micrometer",
        geometry: cells::geometry,
        levels: 2,
        color: "layer",
        ramp: Ramp::Viridis,
        view: View::new(24.0, 24.0),
    },
    Sample {
        file: "surface.zv",
        picture: "surface.png",
        title: "A folded surface",
        kind: GeometryKind::Mesh,
        unit: "millimeter",
        geometry: surface::geometry,
        levels: 2,
        color: "height",
        ramp: Ramp::Viridis,
        view: View::new(60.0, 26.0),
    },
];

impl Sample {
    /// Writes the store and its levels, and validates it.
    pub(super) async fn make(
        &self,
        folder: &Path,
        seed: u64,
        overwrite: bool,
    ) -> Result<Made, Box<dyn Error>> {
        let begun = Instant::now();
        let address = folder.join(self.file).display().to_string();
        let mut design = Design::new(self.kind);
        design.compression = Compression::Zstd(1);
        let axes = ["x", "y", "z"].map(|name| Axis {
            name: name.to_owned(),
            kind: "space".to_owned(),
            unit: Some(self.unit.to_owned()),
        });
        design.axes = Some(axes.to_vec());
        let mut options = CreateOptions::default();
        if overwrite {
            options.existing = Existing::Replace;
        }
        zvf::create(&address, (self.geometry)(seed), design, &options).await?;
        let mut automatic = Automatic::default();
        automatic.levels = Some(self.levels);
        let mut options = PyramidOptions::default();
        options.levels = Levels::Automatic(automatic);
        zvf::pyramid(&address, &options).await?;
        let open = OpenOptions::default();
        let report = zvf::validate(&address, &open, &validation::Options::default()).await?;
        let info = Dataset::open(&address).await?.info().await?;
        let vertices = info.levels.iter().map(|level| level.vertices.unwrap_or(0));
        Ok(Made {
            file: self.file,
            title: self.title,
            vertices: vertices.collect(),
            bytes: info.levels.iter().map(|level| level.bytes).sum(),
            errors: report.count(validation::Severity::Error),
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// Draws the store.
    pub(super) async fn draw(&self, folder: &Path) -> Result<Drawn, Box<dyn Error>> {
        let begun = Instant::now();
        let dataset = Dataset::open(&folder.join(self.file).display().to_string()).await?;
        let mut options = RenderOptions::default();
        let Ok(color) = self.color.parse::<ColorBy>();
        options.color = color;
        options.ramp = self.ramp;
        options.view = Some(self.view);
        options.title = Some(self.title.to_owned());
        let png = render(&dataset, &options).await?.picture.png();
        output::write_file(&folder.join(self.picture), &png)?;
        Ok(Drawn {
            file: self.picture,
            bytes: png.len() as u64,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// As the command that draws the same.
    pub(super) fn command(&self, folder: &str) -> String {
        let View {
            azimuth, elevation, ..
        } = self.view;
        format!(
            "zvf render {folder}/{} -o picture.png --color {} --view {azimuth},{elevation}",
            self.file, self.color
        )
    }
}
