//! Coordinate reference systems in VLRs.

use serde_json::{Value, json};

use super::record::VariableRecord;

/// User of the records about coordinate reference systems.
pub(super) const PROJECTION: &str = "LASF_Projection";
/// Record with the text of a coordinate reference system.
pub(super) const WKT: u16 = 2112;
/// Record with the keys of `GeoTIFF`.
const GEO_KEYS: u16 = 34735;
/// Keys of `GeoTIFF`: code of a projected and of a geographic system.
const CODES: [u16; 2] = [3072, 2048];
/// Key of the unit of projected coordinates.
const UNIT_KEY: u16 = 3076;
/// Units of length by their codes.
const UNITS: [(u16, &str); 3] = [(9001, "metre"), (9002, "foot"), (9003, "US survey foot")];
/// Code of a system that the user defines.
const USER_DEFINED: u16 = 32767;

/// Returns the coordinate reference system of a file.
pub(super) fn of_records(records: &[VariableRecord]) -> Option<Value> {
    let find = |id: u16| {
        let mut records = records.iter();
        records.find(|record| record.user == PROJECTION && record.id == id)
    };
    if let Some(wkt) = find(WKT) {
        let decoded = String::from_utf8_lossy(wkt.data());
        let text = decoded.trim_end_matches('\0');
        if !text.is_empty() {
            return Some(match code_of(text) {
                Some(code) => json!({ "type": "EPSG", "code": code, "wkt": text }),
                None => json!({ "wkt": text }),
            });
        }
    }
    let (words, _) = find(GEO_KEYS)?.data().as_chunks::<2>();
    let words: Vec<u16> = words.iter().map(|word| u16::from_le_bytes(*word)).collect();
    let (keys, _) = words.get(4..)?.as_chunks::<4>();
    let code = |wanted: u16| {
        let mut codes = keys.iter().filter_map(|key| match *key {
            // A location of 0 means that the key holds its value.
            [id, 0, 1, value] if id == wanted => Some(value),
            _ => None,
        });
        codes.find(|value| *value != 0 && *value != USER_DEFINED)
    };
    let found = CODES.into_iter().find_map(code)?;
    let mut crs = json!({ "type": "EPSG", "code": found });
    // The code names the unit as well, but only in the registry.
    let unit = code(UNIT_KEY);
    let unit = UNITS.into_iter().find(|(code, _)| Some(*code) == unit);
    if let (Some((_, name)), Some(crs)) = (unit, crs.as_object_mut()) {
        crs.insert("unit".to_owned(), name.into());
    }
    Some(crs)
}

/// Returns whether records have keys of `GeoTIFF`.
pub(super) fn has_keys(records: &[VariableRecord]) -> bool {
    let mut records = records.iter();
    records.any(|record| record.user == PROJECTION && record.id == GEO_KEYS)
}

/// Returns whether two reference systems are the same one, as far as their codes or texts tell.
pub(super) fn are_same(one: &Value, other: &Value) -> bool {
    match (epsg(one), epsg(other)) {
        (Some(one), Some(other)) => one == other,
        _ => match (one.get("wkt"), other.get("wkt")) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
    }
}

/// Returns the EPSG code of a reference system: that of PROJJSON, or that of [`of_records`].
pub(crate) fn epsg(crs: &Value) -> Option<u64> {
    let (authority, code) = match crs.get("id") {
        Some(id) => (id.get("authority")?, id.get("code")?),
        None => (crs.get("type")?, crs.get("code")?),
    };
    code.as_u64().filter(|_| authority == "EPSG")
}

/// Returns the EPSG code of a text, which is the last item of the outermost bracket.
fn code_of(wkt: &str) -> Option<u32> {
    let wkt = wkt.trim_end().strip_suffix(']')?.trim_end();
    let (_, code) = wkt.strip_suffix(']')?.rsplit_once('[')?;
    let (authority, code) = code.split_once(',')?;
    let is_epsg = authority.trim().trim_matches('"') == "EPSG";
    let code = code.trim().trim_matches('"').parse().ok();
    code.filter(|_| is_epsg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_belong_to_the_whole_text() {
        for (wkt, code) in [
            (
                r#"PROJCS["a",UNIT["m",1],AUTHORITY["EPSG","25832"]]"#,
                Some(25832),
            ),
            (r#"PROJCRS["a",ID["EPSG",2180]]"#, Some(2180)),
            (r#"PROJCS["a",UNIT["m",1,AUTHORITY["EPSG","9001"]]]"#, None),
            (r#"PROJCS["a",AUTHORITY["ESRI","1"]]"#, None),
            ("]", None),
        ] {
            assert_eq!(code_of(wkt), code, "{wkt}");
        }
    }

    #[test]
    fn systems_are_compared_by_code_or_text() {
        let id = |code: u32| json!({ "name": "a", "id": { "authority": "EPSG", "code": code } });
        let of_keys = json!({ "type": "EPSG", "code": 25832, "unit": "metre" });
        let of_text = json!({ "type": "EPSG", "code": 25832, "wkt": "b" });
        assert!(are_same(&of_keys, &id(25832)) && are_same(&of_text, &of_keys));
        assert!(!are_same(&of_keys, &id(2056)));
        let [one, other] = ["b", "c"].map(|wkt| json!({ "name": "a", "wkt": wkt }));
        assert!(are_same(&json!({ "wkt": "b" }), &one) && are_same(&of_text, &one));
        assert!(!are_same(&one, &other) && !are_same(&one, &json!({ "name": "a" })));
    }
}
