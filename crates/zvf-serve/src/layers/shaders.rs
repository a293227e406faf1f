//! Code that colours layers.

use zvf_precomputed::{AnnotationKind, PropertyType, VertexAttribute};

use super::attributes::PropertyPlan;

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
