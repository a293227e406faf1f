//! Coordinate reference systems as PROJJSON, by their codes in the EPSG registry.

use serde_json::{Value, json};

/// A geographic system: its code, its name, its datum, and the name and the inverse flattening of the
/// ellipsoid, whose semi-major axis is 6378137 m.
type Geographic = (u64, &'static str, &'static str, &'static str, f64);

const WGS_84: Geographic = (
    4326,
    "WGS 84",
    "World Geodetic System 1984",
    "WGS 84",
    298.257_223_563,
);
const ETRS89: Geographic = (
    4258,
    "ETRS89",
    "European Terrestrial Reference System 1989",
    "GRS 1980",
    298.257_222_101,
);
const NAD83: Geographic = (
    4269,
    "NAD83",
    "North American Datum 1983",
    "GRS 1980",
    298.257_222_101,
);

/// Systems of UTM zones: the code of zone 0, the first and the last zone, the hemisphere, and the
/// geographic system.
const ZONES: [(u64, u64, u64, char, Geographic); 4] = [
    (32600, 1, 60, 'N', WGS_84),
    (32700, 1, 60, 'S', WGS_84),
    (25800, 28, 38, 'N', ETRS89),
    (26900, 1, 23, 'N', NAD83),
];

/// Returns a system of the registry as PROJJSON; `None` unless it is a UTM zone, or a geographic system,
/// of WGS 84, ETRS89 or NAD83.
pub(super) fn projjson(code: u64) -> Option<Value> {
    let mut geographic_systems = [WGS_84, ETRS89, NAD83].into_iter();
    if let Some(found) = geographic_systems.find(|system| system.0 == code) {
        return Some(geographic(found));
    }
    ZONES
        .into_iter()
        .find_map(|(base, first, last, hemisphere, of)| {
            let zone = code.checked_sub(base)?;
            (first..=last)
                .contains(&zone)
                .then(|| utm(code, zone, hemisphere, of))
        })
}

fn geographic((code, name, datum, ellipsoid, inverse_flattening): Geographic) -> Value {
    json!({
        "type": "GeographicCRS",
        "name": name,
        "datum": {
            "type": "GeodeticReferenceFrame",
            "name": datum,
            "ellipsoid": {
                "name": ellipsoid,
                "semi_major_axis": 6_378_137,
                "inverse_flattening": inverse_flattening,
            },
        },
        "coordinate_system": {
            "subtype": "ellipsoidal",
            "axis": [
                axis("Geodetic latitude", "Lat", "north", "degree"),
                axis("Geodetic longitude", "Lon", "east", "degree"),
            ],
        },
        "id": { "authority": "EPSG", "code": code },
    })
}

fn utm(code: u64, zone: u64, hemisphere: char, of: Geographic) -> Value {
    let parameter = |name: &str, value: Value, unit: &str| json!({ "name": name, "value": value, "unit": unit });
    let meridian = i64::try_from(zone)
        .unwrap_or(0)
        .saturating_mul(6)
        .saturating_sub(183);
    let northing = if hemisphere == 'S' { 10_000_000 } else { 0 };
    let zone = format!("UTM zone {zone}{hemisphere}");
    json!({
        "type": "ProjectedCRS",
        "name": format!("{} / {zone}", of.1),
        "base_crs": geographic(of),
        "conversion": {
            "name": zone,
            "method": {
                "name": "Transverse Mercator",
                "id": { "authority": "EPSG", "code": 9807 },
            },
            "parameters": [
                parameter("Latitude of natural origin", 0.into(), "degree"),
                parameter("Longitude of natural origin", meridian.into(), "degree"),
                parameter("Scale factor at natural origin", 0.9996.into(), "unity"),
                parameter("False easting", 500_000.into(), "metre"),
                parameter("False northing", northing.into(), "metre"),
            ],
        },
        "coordinate_system": {
            "subtype": "Cartesian",
            "axis": [
                axis("Easting", "E", "east", "metre"),
                axis("Northing", "N", "north", "metre"),
            ],
        },
        "id": { "authority": "EPSG", "code": code },
    })
}

fn axis(name: &str, abbreviation: &str, direction: &str, unit: &str) -> Value {
    json!({ "name": name, "abbreviation": abbreviation, "direction": direction, "unit": unit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::las::epsg;

    #[test]
    fn zones_have_their_meridians() {
        for (code, name, meridian) in [
            (25832, "ETRS89 / UTM zone 32N", 9),
            (32760, "WGS 84 / UTM zone 60S", 177),
            (26901, "NAD83 / UTM zone 1N", -177),
        ] {
            let crs = projjson(code).unwrap();
            let found = crs.pointer("/conversion/parameters/1/value");
            assert_eq!(
                (crs["name"].as_str(), found),
                (Some(name), Some(&json!(meridian)))
            );
            assert_eq!(epsg(&crs), Some(code));
        }
        assert_eq!(epsg(&projjson(4258).unwrap()), Some(4258));
        assert!(
            [25827, 25839, 32661, 32600, 2180]
                .map(projjson)
                .iter()
                .all(Option::is_none)
        );
    }
}
