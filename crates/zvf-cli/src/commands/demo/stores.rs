//! The stores of the demo.

use std::{error::Error, path::Path, time::Instant};

use zvf::{
    AutoLevels, AxisSpec, CellCompression, CreateOptions, Dataset, Design, GeometryBuilder,
    GeometryKind, PyramidLevels, PyramidOptions,
};
use zvf_render::{ColorBy, Colormap, RenderOptions, Viewpoint, render};

use super::{cells, neurons, surface, tracts};

/// A store of the demo, with the settings for writing and drawing it.
pub(super) struct DemoStore {
    pub(super) file: &'static str,
    pub(super) picture: &'static str,
    title: &'static str,
    kind: GeometryKind,
    unit: &'static str,
    geometry: fn(u64, u32) -> GeometryBuilder,
    levels: u32,
    color: &'static str,
    ramp: Colormap,
    view: Viewpoint,
}

/// Options for writing the stores.
#[derive(Clone, Copy)]
pub(super) struct DemoOptions {
    pub(super) seed: u64,
    /// Divisor of the amount of geometry.
    pub(super) fewer: u32,
    pub(super) overwrite: bool,
}

/// A store that was written.
pub(super) struct StoreRun {
    pub(super) file: &'static str,
    pub(super) title: &'static str,
    /// Vertices of each level, the finest first.
    pub(super) vertices: Vec<u64>,
    pub(super) bytes: u64,
    pub(super) errors: u64,
    pub(super) seconds: f64,
}

/// A picture that was drawn.
pub(super) struct PictureRun {
    pub(super) file: &'static str,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

pub(super) const STORES: &[DemoStore] = &[
    DemoStore {
        file: "tracts.zv",
        picture: "tracts.png",
        title: "Streamlines of a brain",
        kind: GeometryKind::Streamlines,
        unit: "millimeter",
        geometry: tracts::geometry,
        levels: 2,
        color: "orientation",
        ramp: Colormap::Viridis,
        view: Viewpoint::new(66.0, 18.0),
    },
    DemoStore {
        file: "neurons.zv",
        picture: "neurons.png",
        title: "Neurons",
        kind: GeometryKind::Skeletons,
        unit: "micrometer",
        geometry: neurons::geometry,
        levels: 1,
        color: "object",
        ramp: Colormap::Viridis,
        view: Viewpoint::new(18.0, 10.0),
    },
    DemoStore {
        file: "cells.zv",
        picture: "cells.png",
        title: "Cells of a piece of cortex",
        kind: GeometryKind::Points,
        unit: "micrometer",
        geometry: cells::geometry,
        levels: 2,
        color: "layer",
        ramp: Colormap::Viridis,
        view: Viewpoint::new(24.0, 24.0),
    },
    DemoStore {
        file: "surface.zv",
        picture: "surface.png",
        title: "A folded surface",
        kind: GeometryKind::Mesh,
        unit: "millimeter",
        geometry: surface::geometry,
        levels: 2,
        color: "height",
        ramp: Colormap::Viridis,
        view: Viewpoint::new(60.0, 26.0),
    },
];

impl DemoStore {
    /// Writes the store and its levels, and validates it.
    pub(super) async fn make(
        &self,
        folder: &Path,
        DemoOptions {
            seed,
            fewer,
            overwrite,
        }: DemoOptions,
    ) -> Result<StoreRun, Box<dyn Error>> {
        let begun = Instant::now();
        let address = folder.join(self.file).display().to_string();
        let mut design = Design::new(self.kind);
        design.compression = CellCompression::Zstd(1);
        let axes = ["x", "y", "z"].map(|name| AxisSpec::new(name).unit(self.unit));
        design.axes = Some(axes.to_vec());
        let mut options = CreateOptions::default();
        if overwrite {
            options.overwrite = true;
        }
        let geometry = (self.geometry)(seed, fewer).build()?;
        zvf::create(&address, geometry, design, &options).await?;
        let mut automatic = AutoLevels::default();
        automatic.levels = Some(self.levels);
        let mut options = PyramidOptions::default();
        options.levels = PyramidLevels::Auto(automatic);
        zvf::build_pyramid(&address, &options).await?;
        let report = zvf::validate(&address, &zvf::ValidateOptions::default()).await?;
        let info = Dataset::open(&address).await?.info().await?;
        let vertices = info.levels.iter().map(|level| level.vertices.unwrap_or(0));
        Ok(StoreRun {
            file: self.file,
            title: self.title,
            vertices: vertices.collect(),
            bytes: info.levels.iter().map(|level| level.bytes).sum(),
            errors: report.count(zvf::Severity::Error),
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// Draws the store.
    pub(super) async fn draw(
        &self,
        folder: &Path,
        fewer: u32,
    ) -> Result<PictureRun, Box<dyn Error>> {
        let begun = Instant::now();
        let dataset = Dataset::open(&folder.join(self.file).display().to_string()).await?;
        let mut options = RenderOptions::default();
        let Ok(color) = self.color.parse::<ColorBy>();
        options.color_by = color;
        options.colormap = self.ramp;
        if fewer > 1 {
            (options.width, options.height) = (480, 360);
        }
        options.view = Some(self.view);
        options.title = Some(self.title.to_owned());
        let png = render(&dataset, &options).await?.picture.png();
        zvf_files::write_bytes(&folder.join(self.picture), &png)?;
        Ok(PictureRun {
            file: self.picture,
            bytes: png.len() as u64,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// Returns the arguments of `zvf` that draw an equivalent picture.
    pub(super) fn words(&self, folder: &str) -> Vec<String> {
        let Viewpoint {
            azimuth, elevation, ..
        } = self.view;
        let (store, view) = (
            format!("{folder}/{}", self.file),
            format!("{azimuth},{elevation}"),
        );
        let words = [
            "render",
            &store,
            "-o",
            "picture.png",
            "--color",
            self.color,
            "--view",
            &view,
            "--title",
            self.title,
        ];
        words.map(str::to_owned).to_vec()
    }
}
