//! Points: the result must equal that of the reference.

use zvf_catalog::Selection;
use zvf_query::Shape;

use super::{
    call::Work,
    columns::{self, data, flat},
    tally::Tally,
};

pub(super) fn check(work: &Work<'_>, tally: &mut Tally) {
    let (call, at) = (work.call, work.at);
    let expected = call.expected.as_ref().unwrap();
    let Some(result) = work.run(&call.query().shape(Shape::Points), tally) else {
        return;
    };
    let positions = &expected["positions"];
    let rows = columns::rows(&result.positions);
    let count = expected["vertex_count"].as_u64().unwrap();
    tally.equal(u64::try_from(rows.len()).unwrap(), count, at);
    tally.equal(rows.concat(), flat(positions), at);
    tally.dtype(Some(result.positions.kind.name()), positions, at);
    let ids = expected.get("object_ids").filter(|ids| !ids.is_null());
    if let Some(ids) = ids {
        let found: serde_json::Value = result.object_ids.as_ref().unwrap().numbers().into();
        tally.equal(&found, data(ids), at);
    }
    let attributes = expected["vertex_attributes"].as_object();
    let named = call.args["attribute_names"].as_array();
    for (name, values) in attributes.into_iter().flatten() {
        let at = format!("{at}, {name}");
        let column = columns::named(&result.vertex, name)
            .unwrap_or_else(|| panic!("{at}: {:?}", result.vertex));
        tally.dtype(columns::dtype(column), values, &at);
        let (found, expected) = (columns::column(column).concat(), flat(values));
        if expected.len() % rows.len().max(1) != 0 {
            // The whole level is compared with the record of its cells.
            tally.not_comparable("an attribute that read_points took for one of another type");
            continue;
        }
        tally.equal(found, expected, &at);
    }
    let names: Vec<String> = named
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    for name in &names {
        if attributes.is_none_or(|given| !given.contains_key(name)) && count > 0 {
            tally.differs(format!("{at}: read_points left out {name}"));
        }
    }
    // The read requested only these columns.
    let columns = names.iter().map(|name| (None, name.clone())).collect();
    let query = call.query().shape(Shape::Points);
    let Some(only) = work.run(&query.columns(Selection::Named(columns)), tally) else {
        return;
    };
    let mut wanted = result.vertex.clone();
    wanted.retain(|column| names.contains(&column.name));
    wanted.sort_by_key(|column| names.iter().position(|name| *name == column.name));
    tally.same(&only.vertex, &wanted, at);
    tally.same(&only.positions, &result.positions, at);
    tally.same(only.object.len() + only.fragment.len(), 0, at);
}
