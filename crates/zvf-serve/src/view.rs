//! The state of a viewer: its layers, and the place from which they are seen.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use zvf_model::level::LevelId;
use zvf_precomputed::{Dimension, Dimensions};

use crate::layers::{Layer, LayerKind, SourceTransform, space::ViewerSpace};

/// The instance of Neuroglancer that its authors host.
pub const HOSTED_VIEWER: &str = "https://neuroglancer-demo.appspot.com";
/// Stores whose extents differ by a larger factor are not drawn in one panel: the smaller one would be
/// hard to see.
const MAX_RATIO: f64 = 4.0;
/// Width of a window by its height.
const WINDOW_ASPECT: f64 = 1.5;
/// Extent of a view by that of the content, as seen from the front.
const MARGIN: f64 = 1.1;
/// Part of the depth of the content by which a view is larger, because near parts look larger.
const DEPTH_MARGIN: f64 = 0.3;
/// Ratio of the depth of the content to its shortest extent above which the viewer looks along the
/// axis of the shortest extent.
const DEEP: f64 = 1.5;
/// The colour of a surface that is the only one of its store. Others have the colours of the viewer.
const SURFACE_COLOR: &str = "#e6c8a0";

/// The layers of a store, and the box and units of its coordinates.
#[derive(Clone, Debug)]
pub struct StoreView {
    pub(crate) layers: Vec<Layer>,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
    pub(crate) space: ViewerSpace,
}

impl StoreView {
    /// Returns the layers.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns the box along each axis, in metres or seconds.
    fn boxes(&self) -> Vec<(&Dimension, f64, f64)> {
        let ends = self.lower.iter().zip(&self.upper);
        let axes = self.space.dimensions.0.iter().zip(ends);
        axes.map(|(axis, (lo, hi))| (axis, lo * axis.scale, hi * axis.scale))
            .collect()
    }

    fn widest(&self) -> f64 {
        let spaces = self
            .boxes()
            .into_iter()
            .filter(|(axis, ..)| axis.unit == "m");
        let widest = spaces.map(|(_, lo, hi)| hi - lo).fold(0.0, f64::max);
        if widest > 0.0 { widest } else { 1e-9 }
    }

    fn has_volume(&self) -> bool {
        let mut layers = self.layers.iter();
        layers.any(|layer| layer.kind == LayerKind::Volume)
    }

    /// Returns whether the boxes of two stores meet and have extents of one order.
    fn is_beside(&self, other: &Self) -> bool {
        let ratio = self.widest() / other.widest();
        let theirs = other.boxes();
        let meets = self.boxes().into_iter().all(|(axis, lo, hi)| {
            let same = theirs
                .iter()
                .find(|(other, ..)| other.name == axis.name && other.unit == axis.unit);
            same.is_none_or(|(_, from, to)| *from <= hi && lo <= *to)
        });
        meets && (1.0 / MAX_RATIO..=MAX_RATIO).contains(&ratio)
    }
}

/// A store with the name and the address under which its layers are served.
#[derive(Clone, Copy, Debug)]
pub struct ServedView<'a> {
    /// The name, which names of layers begin with.
    pub name: &'a str,
    /// Address of the folder of its layers.
    pub url: &'a str,
    /// Its layers.
    pub view: &'a StoreView,
}

/// Returns the address of a viewer that shows a state; that of [`HOSTED_VIEWER`] without `viewer`.
pub fn viewer_link(viewer: Option<&str>, state: &str) -> String {
    let viewer = viewer.unwrap_or(HOSTED_VIEWER);
    let mut link = format!("{}/#!", viewer.trim_end_matches('/'));
    for byte in state.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~:/".contains(&byte);
        if is_plain {
            link.push(char::from(byte));
        } else {
            _ = write!(link, "%{byte:02X}");
        }
    }
    link
}

/// Returns the last part of an address without the extension of stores: a name for its layers.
pub fn store_name(address: &str) -> String {
    let name = address.trim_end_matches(['/', '\\']);
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let extensions = [".zv", ".zvr", ".zarr", ".zarrvectors", ".zip"];
    let stem = |name: &str| {
        let stripped = extensions
            .iter()
            .find_map(|extension| name.strip_suffix(extension));
        stripped.map(str::to_owned)
    };
    // A zip file may be named after the folder that it holds: tracts.zv.zip.
    let once = stem(name).unwrap_or_else(|| name.to_owned());
    stem(&once).unwrap_or(once)
}

/// Returns the state that shows stores. Those whose boxes meet are drawn together, and others in
/// panels beside each other.
pub fn viewer_state(stores: &[ServedView<'_>]) -> String {
    let mut groups: Vec<Vec<&ServedView<'_>>> = Vec::new();
    for store in stores {
        let beside = groups
            .iter_mut()
            .find(|group| group.iter().any(|other| store.view.is_beside(other.view)));
        match beside {
            Some(group) => group.push(store),
            None => groups.push(vec![store]),
        }
    }
    let dimensions = dimensions(stores);
    let is_shared = groups.iter().any(|group| group.len() > 1);
    let layers: Vec<Value> = stores
        .iter()
        .flat_map(|store| {
            let layers = store.view.layers.iter();
            layers.map(move |layer| layer_state(store, layer, is_shared))
        })
        .collect();
    let mut state = Map::new();
    state.insert("showAxisLines".to_owned(), false.into());
    state.insert("layers".to_owned(), layers.into());
    let first = groups.first().map(|group| camera(group, &dimensions));
    if let Some(camera) = first {
        let aspect = match groups.as_slice() {
            [group] => WINDOW_ASPECT / f64::from(width_of(group)),
            _ => WINDOW_ASPECT,
        };
        state.insert("projectionScale".to_owned(), camera.height(aspect).into());
        if let Some(rotation) = camera.direction.rotation() {
            let rotation = rotation.to_vec().into();
            state.insert("projectionOrientation".to_owned(), rotation);
        }
        state.insert("position".to_owned(), camera.centre.into());
        state.insert(
            "crossSectionScale".to_owned(),
            (camera.widest / 600.0).into(),
        );
    }
    let layout = match groups.as_slice() {
        [] => Value::from("3d"),
        [group] => Value::from(layout_of(group)),
        groups => panels(groups, &dimensions),
    };
    state.insert("layout".to_owned(), layout);
    // The order of axes counts, which a map may change.
    let state = Value::Object(state).to_string();
    let members = state.strip_prefix('{').unwrap_or(&state);
    format!("{{\"dimensions\":{},{members}", dimensions.to_json())
}

/// Returns the axes of all stores, with the units of the first that has them.
fn dimensions(stores: &[ServedView<'_>]) -> Dimensions {
    let mut axes: Vec<Dimension> = Vec::new();
    for store in stores {
        for axis in &store.view.space.dimensions.0 {
            if axes.iter().all(|known| known.name != axis.name) {
                axes.push(axis.clone());
            }
        }
    }
    Dimensions(axes)
}

/// The place from which a group of stores is seen, in the units of the state.
struct Camera {
    centre: Vec<f64>,
    /// Extents along the axes of space.
    extents: [f64; 3],
    direction: ViewDirection,
    widest: f64,
}

/// The axis along which the viewer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViewDirection {
    X,
    Y,
    /// The default of the viewer.
    Z,
}

impl ViewDirection {
    /// Returns the direction for content of these extents: along the shortest extent, if the third
    /// is much longer.
    fn of([x, y, z]: [f64; 3]) -> Self {
        if x.min(y) * DEEP >= z {
            Self::Z
        } else if x < y {
            Self::X
        } else {
            Self::Y
        }
    }

    /// Returns the rotation as a quaternion, with the third axis upwards; `None` for the default.
    fn rotation(self) -> Option<[f64; 4]> {
        let quarter = core::f64::consts::FRAC_1_SQRT_2;
        match self {
            Self::X => Some([-0.5, -0.5, 0.5, 0.5]),
            Self::Y => Some([-quarter, 0.0, 0.0, quarter]),
            Self::Z => None,
        }
    }
}

impl Camera {
    /// Returns the height of the view in space that shows the content in a panel.
    fn height(&self, aspect: f64) -> f64 {
        let [x, y, z] = self.extents;
        let [width, height, depth] = match self.direction {
            ViewDirection::X => [y, z, x],
            ViewDirection::Y => [x, z, y],
            ViewDirection::Z => [x, y, z],
        };
        let height = height.max(width / aspect) * MARGIN + depth * DEPTH_MARGIN;
        // A content that is seen from its edge.
        height.max(self.widest * 0.1)
    }
}

fn camera(group: &[&ServedView<'_>], dimensions: &Dimensions) -> Camera {
    let boxes: Vec<_> = group.iter().flat_map(|store| store.view.boxes()).collect();
    let ends = |axis: &Dimension| {
        let same = boxes.iter().filter(|(other, ..)| other.name == axis.name);
        same.fold(None, |ends: Option<(f64, f64)>, (_, lo, hi)| {
            let (from, to) = ends.unwrap_or((*lo, *hi));
            Some((from.min(*lo), to.max(*hi)))
        })
    };
    let centre = dimensions.0.iter().map(|axis| {
        let (lo, hi) = ends(axis).unwrap_or((0.0, 0.0));
        f64::midpoint(lo, hi) / axis.scale
    });
    let scale = dimensions.0.iter().find(|axis| axis.unit == "m");
    let scale = scale.map_or(1.0, |axis| axis.scale);
    let mut along = dimensions.0.iter().filter_map(|axis| {
        let (lo, hi) = ends(axis).filter(|_| axis.unit == "m")?;
        Some((hi - lo) / scale)
    });
    let extents = [(); 3].map(|()| along.next().unwrap_or(0.0));
    // Cross-sections are perpendicular to the third axis.
    let direction = match layout_of(group) {
        "3d" => ViewDirection::of(extents),
        _ => ViewDirection::Z,
    };
    let widest = extents.iter().copied().fold(0.0, f64::max);
    Camera {
        centre: centre.collect(),
        extents,
        direction,
        widest: if widest > 0.0 { widest } else { 1.0 },
    }
}

/// Returns a layout with a panel for each group, in columns of about as many as there are columns.
fn panels(groups: &[Vec<&ServedView<'_>>], dimensions: &Dimensions) -> Value {
    let side = groups.len().isqrt();
    let columns = if side.saturating_mul(side) < groups.len() {
        side.saturating_add(1)
    } else {
        side
    };
    let columns = groups.chunks(groups.len().div_ceil(columns.max(1)).max(1));
    let across = columns.len();
    let columns = columns.map(|column| {
        let aspect = WINDOW_ASPECT * as_float(column.len()) / as_float(across);
        let column = column.iter().map(|group| {
            let camera = camera(group, dimensions);
            let names = group.iter().flat_map(|store| {
                let layers = store.view.layers.iter();
                layers.map(|layer| layer_name(layer, store.name))
            });
            let height = camera.height(aspect / f64::from(width_of(group)));
            let rotation = match camera.direction.rotation() {
                Some(rotation) => json!({"link": "unlinked", "value": rotation}),
                None => json!({"link": "unlinked"}),
            };
            json!({
                "type": "viewer",
                "layout": layout_of(group),
                "layers": names.collect::<Vec<_>>(),
                "position": {"link": "unlinked", "value": camera.centre},
                "projectionScale": {"link": "unlinked", "value": height},
                "crossSectionScale": {"link": "unlinked", "value": camera.widest / 600.0},
                "projectionOrientation": rotation,
            })
        });
        json!({"type": "column", "children": column.collect::<Vec<_>>()})
    });
    json!({"type": "row", "children": columns.collect::<Vec<_>>()})
}

#[expect(clippy::cast_precision_loss, reason = "a number of panels")]
fn as_float(count: usize) -> f64 {
    count as f64
}

/// Returns the number of views beside each other in a panel.
fn width_of(group: &[&ServedView<'_>]) -> u8 {
    match layout_of(group) {
        "3d" => 1,
        _ => 2,
    }
}

/// Returns the layout of a panel: volumes are drawn in a cross-section beside the view in space.
fn layout_of(group: &[&ServedView<'_>]) -> &'static str {
    if group.iter().any(|store| store.view.has_volume()) {
        "xy-3d"
    } else {
        "3d"
    }
}

fn layer_name(layer: &Layer, name: &str) -> String {
    match layer.kind {
        LayerKind::Annotations | LayerKind::Volume => name.to_owned(),
        kind if layer.level == LevelId::FULL => format!("{name} {}", kind.folder()),
        kind => format!("{name} {} level {}", kind.folder(), layer.level),
    }
}

/// Returns a transform as Neuroglancer reads it: its factors relate lengths, whatever the units are,
/// and its shifts are in output units.
fn transform_json(transform: &SourceTransform) -> Value {
    let unit = transform.output;
    let [x, y, z] = transform.input;
    let rows = transform.rows.map(|[by_x, by_y, by_z, shift]| {
        [by_x * unit / x, by_y * unit / y, by_z * unit / z, shift]
    });
    json!({
        "matrix": rows,
        "inputDimensions": {"x": [x, "m"], "y": [y, "m"], "z": [z, "m"]},
        "outputDimensions": {"x": [unit, "m"], "y": [unit, "m"], "z": [unit, "m"]},
    })
}

/// Returns the state of a layer. Surfaces that share a panel with other stores are transparent.
fn layer_state(store: &ServedView<'_>, layer: &Layer, is_shared: bool) -> Value {
    let ServedView { name, url, view } = store;
    let mut state = Map::new();
    let url = url.trim_end_matches('/');
    let source = format!("precomputed://{url}/{}", layer.folder());
    state.insert("name".to_owned(), layer_name(layer, name).into());
    let source = match &layer.transform {
        None => source.into(),
        Some(transform) => json!({"url": source, "transform": transform_json(transform)}),
    };
    state.insert("source".to_owned(), source);
    match layer.kind {
        LayerKind::Annotations => {
            state.insert("type".to_owned(), "annotation".into());
            if let Some(shader) = &layer.shader {
                state.insert("shader".to_owned(), shader.as_str().into());
            }
            let mut linked = Map::new();
            let objects = [LayerKind::Segments, LayerKind::Skeletons];
            for (relationship, kinds) in [("object", &objects[..]), ("group", &[LayerKind::Groups])]
            {
                let mut others = view.layers.iter();
                let other = others.find(|other| kinds.contains(&other.kind));
                if let Some(other) = other.filter(|_| layer.is_related) {
                    linked.insert(relationship.to_owned(), layer_name(other, name).into());
                }
            }
            if !linked.is_empty() {
                state.insert("linkedSegmentationLayer".to_owned(), linked.into());
            }
        }
        LayerKind::Skeletons | LayerKind::Meshes | LayerKind::Segments | LayerKind::Groups => {
            let segments: Vec<String> = layer.shown.iter().map(ToString::to_string).collect();
            state.insert("type".to_owned(), "segmentation".into());
            state.insert("segments".to_owned(), segments.into());
            state.insert("hideSegmentZero".to_owned(), false.into());
            if layer.kind == LayerKind::Meshes && is_shared {
                state.insert("objectAlpha".to_owned(), 0.3.into());
            }
            if layer.kind == LayerKind::Meshes && layer.items == 1 {
                state.insert("segmentDefaultColor".to_owned(), SURFACE_COLOR.into());
            }
            if let Some(shader) = &layer.shader {
                let skeletons = json!({"mode3d": "lines", "shader": shader});
                state.insert("skeletonRendering".to_owned(), skeletons);
            }
            // Annotations show the same paths at any distance, where skeletons are loaded whole, and
            // level 0 shows the same objects.
            let is_annotated = |layer: &Layer| layer.kind == LayerKind::Annotations;
            let is_shown_otherwise = layer.level != LevelId::FULL
                || layer.kind == LayerKind::Groups
                || layer.kind == LayerKind::Skeletons && view.layers.iter().any(is_annotated);
            if is_shown_otherwise {
                state.insert("visible".to_owned(), false.into());
            }
        }
        LayerKind::Volume => {
            state.insert("type".to_owned(), "image".into());
            if let Some(shader) = &layer.shader {
                state.insert("shader".to_owned(), shader.as_str().into());
            }
        }
    }
    Value::Object(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(lower: f64, upper: f64, unit: f64) -> StoreView {
        let axes = ["x", "y", "z"].map(|name| Dimension {
            name: name.to_owned(),
            scale: unit,
            unit: "m".to_owned(),
        });
        StoreView {
            layers: vec![Layer {
                kind: LayerKind::Annotations,
                level: LevelId::FULL,
                items: 1,
                shader: None,
                shown: Vec::new(),
                is_related: false,
                transform: None,
            }],
            lower: vec![lower; 3],
            upper: vec![upper; 3],
            space: ViewerSpace {
                dimensions: Dimensions(axes.to_vec()),
                notes: Vec::new(),
            },
        }
    }

    fn state_of(views: &[StoreView]) -> Value {
        let stores: Vec<ServedView<'_>> = views
            .iter()
            .map(|view| ServedView {
                name: "a",
                url: "http://h",
                view,
            })
            .collect();
        serde_json::from_str(&viewer_state(&stores)).unwrap()
    }

    #[test]
    fn stores_in_one_place_share_a_panel() {
        // 1 to 3 mm, and 2000 to 4000 µm.
        let state = state_of(&[view(1.0, 3.0, 1e-3), view(2000.0, 4000.0, 1e-6)]);
        assert_eq!(state["layout"], "3d");
        let centre: Vec<f64> = serde_json::from_value(state["position"].clone()).unwrap();
        assert!(
            centre.iter().all(|at| (at - 2.5).abs() < 1e-9),
            "{centre:?}"
        );
    }

    #[test]
    fn stores_apart_have_panels() {
        let state = state_of(&[
            view(0.0, 1.0, 1e-3),
            view(5.0, 6.0, 1e-3),
            view(0.0, 1e-6, 1e-3),
        ]);
        let rows = state["layout"]["children"].as_array().unwrap();
        let counts: Vec<usize> = rows
            .iter()
            .map(|row| row["children"].as_array().unwrap().len())
            .collect();
        assert_eq!(counts, [2, 1]);
        let second = &rows[0]["children"][1]["position"]["value"][0];
        assert_eq!(second.as_f64(), Some(5.5));
    }

    #[test]
    fn a_small_store_has_a_panel_of_its_own() {
        let state = state_of(&[view(0.0, 20.0, 1e-3), view(4.0, 8.0, 1e-3)]);
        let columns = state["layout"]["children"].as_array().unwrap();
        let scales: Vec<f64> = columns
            .iter()
            .map(|column| {
                column["children"][0]["projectionScale"]["value"]
                    .as_f64()
                    .unwrap()
            })
            .collect();
        // Each fills its panel, which is narrower than it is high: 20 / 0.75 * 1.1 + 20 * 0.3.
        let expected = [20.0, 4.0].map(|extent| extent * (1.1 / 0.75 + 0.3));
        assert_eq!(scales.len(), 2);
        for (scale, expected) in scales.iter().zip(expected) {
            assert!((scale - expected).abs() < 1e-9, "{scales:?}");
        }
    }

    #[test]
    fn a_deep_store_is_seen_from_its_side() {
        let mut deep = view(0.0, 4.0, 1e-3);
        deep.upper = vec![4.0, 1.0, 3.0];
        let state = state_of(&[deep.clone()]);
        let rotation: [f64; 4] =
            serde_json::from_value(state["projectionOrientation"].clone()).unwrap();
        assert!(rotation[0] < 0.0 && rotation[3] > 0.0, "{rotation:?}");
        // 4 wide, 3 high, 1 deep.
        let height = state["projectionScale"].as_f64().unwrap();
        assert!((height - (3.0 * 1.1 + 0.3)).abs() < 1e-9, "{height}");
        let two = state_of(&[deep, view(50.0, 51.0, 1e-3)]);
        let panels = two["layout"]["children"].as_array().unwrap();
        let rotation = |at: usize| &panels[at]["children"][0]["projectionOrientation"];
        assert_eq!(rotation(0)["value"].as_array().unwrap().len(), 4);
        assert!(rotation(1).get("value").is_none());
        assert_eq!(ViewDirection::of([1.0, 2.0, 3.0]), ViewDirection::X);
        // A flat store is seen from its front.
        assert_eq!(ViewDirection::of([0.0, 2.0, 3.0]), ViewDirection::X);
        assert_eq!(ViewDirection::of([3.0, 2.0, 0.0]), ViewDirection::Z);
        assert_eq!(ViewDirection::of([3.0, 2.5, 3.0]), ViewDirection::Z);
    }

    #[test]
    fn names_of_stores_have_no_extension() {
        for address in [
            "tracts",
            "a/tracts.zv",
            "s3://b/tracts.zv/",
            "C:\\tracts.zv.zip",
        ] {
            assert_eq!(store_name(address), "tracts", "{address}");
        }
    }

    #[test]
    fn links_are_percent_encoded() {
        assert_eq!(
            viewer_link(Some("http://h/"), "{\"a\"}"),
            "http://h/#!%7B%22a%22%7D"
        );
    }
}
