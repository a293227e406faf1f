//! The state of the viewer that shows an export, and the code that colours its layers.

use serde_json::{Map, Value, json};
use zvf_precomputed::{AnnotationKind, PropertyType, VertexAttribute};

use super::{ExportReport, ExportedLayer, LayerKind, attributes::PropertyPlan};

/// Colours by number of a category.
const PALETTE: &str = "vec3 palette(float n) {\n  return 0.55 + 0.45 * cos(6.2831853 * (n * 0.381966 + vec3(0.0, 0.33, 0.67)));\n}\n";

/// Returns the shader of points: by colour, category, or the first number with a range.
pub(super) fn annotation_shader(plan: &PropertyPlan) -> Option<String> {
    let mut properties = plan.specs.iter();
    if let Some(colour) = properties
        .clone()
        .find(|spec| matches!(spec.kind, PropertyType::Rgb | PropertyType::Rgba))
    {
        let id = &colour.id;
        return Some(format!(
            "void main() {{\n  setColor(prop_{id}());\n  setPointMarkerBorderWidth(0.0);\n}}"
        ));
    }
    if let Some(category) = properties.clone().find(|spec| !spec.labels.is_empty()) {
        let id = &category.id;
        return Some(format!(
            "{PALETTE}void main() {{\n  setColor(palette(float(prop_{id}())));\n  \
             setPointMarkerBorderWidth(0.0);\n}}"
        ));
    }
    let ranges = plan.ranges.iter();
    let (number, (low, high)) = properties
        .by_ref()
        .zip(ranges)
        .find_map(|(spec, range)| Some((spec, range.filter(|(low, high)| low < high)?)))?;
    let id = &number.id;
    Some(format!(
        "#uicontrol invlerp normalized(property=\"{id}\", range=[{low}, {high}])\n\
         void main() {{\n  setColor(colormapJet(normalized()));\n  \
         setPointMarkerBorderWidth(0.0);\n}}"
    ))
}

/// Returns the shader of lines and polylines: by orientation.
pub(super) fn path_shader(kind: AnnotationKind, id: &str) -> String {
    let set = match kind {
        AnnotationKind::Line => "setLineColor(prop_ID(), prop_ID())",
        _ => "setLineColor(prop_ID())",
    };
    let set = set.replace("ID", id);
    format!("void main() {{\n  {set};\n  setEndpointMarkerSize(0.0);\n}}")
}

/// Returns the shader of skeletons with attributes: the colours of objects, with a hint.
pub(super) fn skeleton_shader(attributes: &[VertexAttribute]) -> Option<String> {
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.components == 1)?;
    let id = &attribute.id;
    // Objects keep their colours; the attribute is offered for a change.
    Some(format!(
        "// prop_{id}() is an attribute of the vertices.\nvoid main() {{\n  emitDefault();\n}}"
    ))
}

/// The instance of Neuroglancer that its authors host.
const HOSTED: &str = "https://neuroglancer-demo.appspot.com";

/// Returns the address of a viewer that shows a state.
pub(crate) fn viewer_link(client: Option<&str>, state: &str) -> String {
    use std::fmt::Write;
    let mut link = format!("{}/#!", client.unwrap_or(HOSTED).trim_end_matches('/'));
    for byte in state.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~:/".contains(&byte);
        match is_plain {
            true => link.push(char::from(byte)),
            // Writing into a string does not fail.
            false => drop(write!(link, "%{byte:02X}")),
        }
    }
    link
}

/// Returns the state that shows the layers of an export at an address.
pub(crate) fn viewer_state(report: &ExportReport, name: &str, url: &str) -> String {
    let layers: Vec<Value> = report
        .layers
        .iter()
        .map(|layer| layer_state(report, layer, name, url))
        .collect();
    let centre = report.lower.iter().zip(&report.upper);
    let centre: Vec<f64> = centre.map(|(lo, hi)| f64::midpoint(*lo, *hi)).collect();
    let extents = report.lower.iter().zip(&report.upper);
    let widest = extents.map(|(lo, hi)| hi - lo).fold(0.0, f64::max);
    let widest = if widest > 0.0 { widest } else { 1.0 };
    let state = json!({
        "position": centre,
        "projectionScale": widest * 1.4,
        "crossSectionScale": widest / 600.0,
        "layout": "3d",
        "showAxisLines": false,
        "layers": layers,
    });
    // The order of axes counts, which a map may change.
    let state = state.to_string();
    let members = state.strip_prefix('{').unwrap_or(&state);
    let dimensions = report.space.dimensions.to_json();
    format!("{{\"dimensions\":{dimensions},{members}")
}

fn layer_name(layer: &ExportedLayer, name: &str) -> String {
    match layer.kind {
        LayerKind::Annotations => name.to_owned(),
        kind => format!("{name} {}", kind.folder()),
    }
}

fn layer_state(report: &ExportReport, layer: &ExportedLayer, name: &str, url: &str) -> Value {
    let mut state = Map::new();
    let source = format!(
        "precomputed://{}/{}",
        url.trim_end_matches('/'),
        layer.kind.folder()
    );
    state.insert("name".to_owned(), layer_name(layer, name).into());
    state.insert("source".to_owned(), source.into());
    let segments: Vec<String> = layer.shown.iter().map(ToString::to_string).collect();
    let is_annotated = report
        .layers
        .iter()
        .any(|layer| layer.kind == LayerKind::Annotations);
    match layer.kind {
        LayerKind::Annotations => {
            state.insert("type".to_owned(), "annotation".into());
            if let Some(shader) = &layer.shader {
                state.insert("shader".to_owned(), shader.as_str().into());
            }
            let related = report
                .layers
                .iter()
                .find(|other| matches!(other.kind, LayerKind::Segments | LayerKind::Skeletons));
            if let Some(related) = related.filter(|_| layer.is_related) {
                let linked = json!({"object": layer_name(related, name)});
                state.insert("linkedSegmentationLayer".to_owned(), linked);
            }
        }
        LayerKind::Skeletons | LayerKind::Meshes | LayerKind::Segments => {
            state.insert("type".to_owned(), "segmentation".into());
            state.insert("segments".to_owned(), segments.into());
            state.insert("hideSegmentZero".to_owned(), false.into());
            if let Some(shader) = &layer.shader {
                let skeletons = json!({"mode3d": "lines", "shader": shader});
                state.insert("skeletonRendering".to_owned(), skeletons);
            }
            // Annotations show the same paths at any distance; skeletons are loaded whole.
            if layer.kind == LayerKind::Skeletons && is_annotated {
                state.insert("visible".to_owned(), false.into());
            }
        }
    }
    Value::Object(state)
}
