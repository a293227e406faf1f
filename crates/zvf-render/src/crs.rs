//! Units of coordinate reference systems.

use serde_json::Value;

/// Returns the unit of the horizontal axes, if the description names it: its own member `unit`, the
/// axes of PROJJSON, or WKT. A code of a registry does not.
pub(crate) fn unit(crs: &Value) -> Option<String> {
    if let Some(unit) = crs.get("unit").and_then(name_of_unit) {
        return Some(unit);
    }
    if let Some(unit) = of_projjson(crs) {
        return Some(unit);
    }
    of_wkt(crs.get("wkt")?.as_str()?)
}

/// Returns the name of a unit of PROJJSON: a text, or an object with one.
fn name_of_unit(unit: &Value) -> Option<String> {
    let name = unit.as_str().or_else(|| unit.get("name")?.as_str())?;
    Some(name.to_owned())
}

fn of_projjson(crs: &Value) -> Option<String> {
    // The first part of a compound system is the horizontal one.
    if let Some(first) = crs.get("components").and_then(|parts| parts.get(0)) {
        return of_projjson(first);
    }
    if let Some(source) = crs.get("source_crs") {
        return of_projjson(source);
    }
    let system = crs.get("coordinate_system")?;
    let of_axis = || system.get("axis")?.get(0)?.get("unit");
    name_of_unit(system.get("unit").or_else(of_axis)?)
}

/// Returns the unit of the axes of a projected or geographic system. It is an element of the system
/// itself in both versions of WKT, or, in the second, of its axes.
fn of_wkt(wkt: &str) -> Option<String> {
    // A system may be a part of a compound one.
    let starts = ["PROJCS[", "PROJCRS[", "PROJECTEDCRS["];
    let start = starts.iter().filter_map(|word| wkt.find(word)).min();
    let text = wkt.get(start.unwrap_or(0)..)?;
    let mut depth = 0_usize;
    let mut word = 0_usize;
    let mut is_quoted = false;
    let mut of_axis = None;
    for (at, character) in text.char_indices() {
        let next = at.saturating_add(character.len_utf8());
        match character {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '[' | '(' => {
                let element = text.get(word..at).unwrap_or_default().trim();
                let name = text.get(next..).and_then(quoted);
                match (depth, element) {
                    (1, "UNIT" | "LENGTHUNIT" | "ANGLEUNIT") => return name,
                    (2, "LENGTHUNIT" | "ANGLEUNIT") => of_axis = of_axis.or(name),
                    _ => {}
                }
                depth = depth.saturating_add(1);
                word = next;
            }
            ']' | ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            ',' => word = next,
            _ => {}
        }
    }
    of_axis
}

/// Returns the text in the quotes with which `text` starts.
fn quoted(text: &str) -> Option<String> {
    let name = text.trim_start().strip_prefix('"')?.split('"').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(crs: &Value, expected: Option<&str>) {
        assert_eq!(unit(crs).as_deref(), expected, "{crs}");
    }

    #[test]
    fn the_unit_of_a_projected_system_is_not_that_of_its_geographic_base() {
        let first = r#"PROJCS["NAD83 / Oregon",GEOGCS["NAD83",DATUM["D",SPHEROID["S",6378137,298]],UNIT["degree",0.0174]],PROJECTION["P"],UNIT["US survey foot",0.3048006096]]"#;
        check(&json!({ "wkt": first }), Some("US survey foot"));
        let compound = format!(r#"COMPD_CS["a, b",{first},VERT_CS["v",UNIT["metre",1]]]"#);
        check(&json!({ "wkt": compound }), Some("US survey foot"));
        let second = r#"PROJCRS["a",BASEGEOGCRS["b",DATUM["d",ELLIPSOID["e",6378137,298,LENGTHUNIT["metre",1]]]],CONVERSION["c",PARAMETER["p",1,LENGTHUNIT["metre",1]]],CS[Cartesian,2],AXIS["x",east,ORDER[1],LENGTHUNIT["foot",0.3048]]]"#;
        check(&json!({ "wkt": second }), Some("foot"));
        let geographic = r#"GEOGCS["a",DATUM["d",SPHEROID["s",1,2]],UNIT["degree",0.0174]]"#;
        check(&json!({ "wkt": geographic }), Some("degree"));
        check(&json!({ "wkt": "]" }), None);
    }

    #[test]
    fn objects_name_the_unit() {
        check(
            &json!({"frame": "RAS+", "unit": "millimeter"}),
            Some("millimeter"),
        );
        let axis = json!({"axis": [{"name": "Easting", "unit": {"type": "LinearUnit", "name": "US survey foot"}}]});
        let projected = json!({"type": "ProjectedCRS", "coordinate_system": axis});
        check(&projected, Some("US survey foot"));
        let compound = json!({"type": "CompoundCRS", "components": [projected]});
        check(&compound, Some("US survey foot"));
        check(
            &json!({"name": "EPSG:2992", "id": {"authority": "EPSG", "code": 2992}}),
            None,
        );
    }
}
