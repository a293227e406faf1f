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
    if let Some(category) = properties.find(|spec| !spec.labels.is_empty()) {
        let id = &category.id;
        return Some(format!(
            "{PALETTE}void main() {{\n  setColor(palette(float(prop_{id}())));\n  \
             setPointMarkerBorderWidth(0.0);\n}}"
        ));
    }
    let (id, (low, high)) = plan.first_number()?;
    Some(format!(
        "#uicontrol invlerp normalized(property=\"{id}\", range=[{low}, {high}])\n\
         void main() {{\n  setColor(colormapJet(normalized()));\n  \
         setPointMarkerBorderWidth(0.0);\n}}"
    ))
}

/// Returns the shader of lines and polylines: by orientation, or by an attribute that the user chooses.
pub(super) fn path_shader(kind: AnnotationKind, id: &str, plan: &PropertyPlan) -> String {
    let set = |colour: &str| match kind {
        AnnotationKind::Line => format!("setLineColor({colour}, {colour})"),
        _ => format!("setLineColor({colour})"),
    };
    let (mut controls, mut code) = (String::new(), set(&format!("prop_{id}()")));
    if let Some((number, (low, high))) = plan.first_number() {
        controls = format!(
            "#uicontrol bool by_attribute checkbox(default=false)\n\
             #uicontrol invlerp normalized(property=\"{number}\", range=[{low}, {high}])\n"
        );
        code = format!(
            "if (by_attribute) {{\n    {};\n  }} else {{\n    {code};\n  }}",
            set("colormapJet(normalized())")
        );
    } else {
        code.push(';');
    }
    format!("{controls}void main() {{\n  {code}\n  setEndpointMarkerSize(0.0);\n}}")
}

/// Returns the shader of skeletons: by the orientation of paths, or the colours of objects, or by an
/// attribute that the user chooses, between bounds that sliders set.
pub(super) fn skeleton_shader(
    attributes: &[VertexAttribute],
    ranges: &[Option<(f64, f64)>],
    orientation: Option<&str>,
) -> Option<String> {
    let colour = match orientation {
        Some(id) => format!("emitRGB(abs(prop_{id}()))"),
        None => "emitDefault()".to_owned(),
    };
    let mut known = attributes.iter().zip(ranges);
    let number = known.find_map(|(attribute, range)| {
        let range = range.filter(|(low, high)| low < high && attribute.components == 1);
        Some((&attribute.id, range?))
    });
    let Some((id, (low, high))) = number else {
        return orientation.map(|_| format!("void main() {{\n  {colour};\n}}"));
    };
    Some(format!(
        "#uicontrol bool by_attribute checkbox(default=false)\n\
         #uicontrol float low slider(min={low}, max={high}, default={low})\n\
         #uicontrol float high slider(min={low}, max={high}, default={high})\n\
         void main() {{\n  \
         if (by_attribute) {{\n    \
         emitRGB(colormapJet(clamp((prop_{id}() - low) / max(high - low, 1e-30), 0.0, 1.0)));\n  \
         }} else {{\n    {colour};\n  }}\n}}"
    ))
}
