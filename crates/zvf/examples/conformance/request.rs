//! A request of the protocol.

use serde_json::Value as Json;
use zvf::{Bbox, LevelChoice, LevelId, Mode, Query, Shape};

use crate::Outcome;

pub(crate) struct Request {
    pub(crate) store: String,
    pub(crate) level: LevelId,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Info,
    Tables,
    Geometry(Box<Query>),
}

impl Request {
    pub(crate) fn parse(json: &Json) -> Outcome<Self> {
        let store = json["store"].as_str().ok_or("no store")?.to_owned();
        let level = json["level"].as_u64().ok_or("no level")?;
        let level = LevelId::new(level.try_into()?);
        let fields = &json["query"];
        let whole = || -> Outcome<Query> {
            let query = Query::new().level(LevelChoice::Number(level));
            // A box excludes links to vertices outside it.
            let mut query = query.shape(shape(fields)?).mode(Mode::Within);
            let mut values = fields["chunked_by"].as_object().into_iter().flatten();
            query.chunked_by = values.next().map(|(_, value)| value.clone().into());
            Ok(query)
        };
        let kind = match fields["kind"].as_str() {
            Some("info") => Kind::Info,
            Some("tables") => Kind::Tables,
            Some("all") => Kind::Geometry(Box::new(whole()?)),
            Some("bbox") => Kind::Geometry(Box::new(whole()?.region(bbox(fields)?))),
            Some("linked") => {
                let levels = fields["levels"].as_i64().ok_or("no levels")?;
                let query = Query::new()
                    .level(LevelChoice::Number(level))
                    .shape(Shape::Points)
                    .region(bbox(fields)?);
                Kind::Geometry(Box::new(query.drill(levels.try_into()?)))
            }
            Some("objects") => {
                let ids: Vec<i64> = serde_json::from_value(fields["ids"].clone())?;
                Kind::Geometry(Box::new(whole()?.objects(ids)))
            }
            Some("groups") => {
                let ids: Vec<u64> = serde_json::from_value(fields["ids"].clone())?;
                Kind::Geometry(Box::new(whole()?.groups(ids)))
            }
            other => return Err(format!("no kind {other:?}").into()),
        };
        Ok(Self { store, level, kind })
    }
}

fn bbox(fields: &Json) -> Outcome<Bbox> {
    let lower: Vec<f64> = serde_json::from_value(fields["lower"].clone())?;
    let upper: Vec<f64> = serde_json::from_value(fields["upper"].clone())?;
    Ok(Bbox::new(&lower, &upper)?)
}

fn shape(fields: &Json) -> Outcome<Shape> {
    match fields["shape"].as_str() {
        Some("points") => Ok(Shape::Points),
        Some("paths") => Ok(Shape::Paths),
        Some("links") => Ok(Shape::Links),
        other => Err(format!("no shape {other:?}").into()),
    }
}
