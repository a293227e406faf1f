//! Values of the command line as what they mean.

use serde_json::Value;
use zvf::{
    model::grid::ChunkCoord,
    query::geometry::{AxesError, Position, Sphere},
};

/// Why text is no value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueError {
    #[error("value {0}, counted from 0, is no number")]
    Number(usize),
    #[error(transparent)]
    Axes(#[from] AxesError),
    #[error("a radius is a number, 0 or more")]
    Radius,
    #[error("a scale is a number above 0")]
    Scale,
    #[error("a chunk is written as its numbers with points between, as 0.-1.2")]
    Chunk,
}

fn numbers(text: &str) -> Result<Vec<f64>, ValueError> {
    let numbers = text.split(',').enumerate().map(|(at, number)| {
        let number = number.trim().parse::<f64>().ok();
        let number = number.filter(|number| !number.is_nan());
        number.ok_or(ValueError::Number(at))
    });
    numbers.collect()
}

/// The centre, then the radius.
pub(super) fn sphere(text: &str) -> Result<Sphere, ValueError> {
    let mut numbers = numbers(text)?;
    let radius = numbers.pop().filter(|radius| *radius >= 0.0);
    let radius = radius.ok_or(ValueError::Radius)?;
    Ok(Sphere::new(&numbers, radius)?)
}

pub(super) fn position(text: &str) -> Result<Position, ValueError> {
    Ok(Position::new(&numbers(text)?)?)
}

pub(super) fn scale(text: &str) -> Result<f64, ValueError> {
    let scale = text.trim().parse::<f64>().ok();
    let scale = scale.filter(|scale| *scale > 0.0);
    scale.ok_or(ValueError::Scale)
}

pub(super) fn chunk(text: &str) -> Result<ChunkCoord, ValueError> {
    let arity = text.split('.').count();
    ChunkCoord::parse(text, arity).map_err(|_| ValueError::Chunk)
}

/// A number, `true`, `false` or a text in double quotes as JSON has them; any
/// other text as it stands.
pub(super) fn chunked_by(text: &str) -> Value {
    let value = serde_json::from_str::<Value>(text).ok();
    let value = value.filter(|value| !value.is_array() && !value.is_object() && !value.is_null());
    value.unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_a_sphere_is_its_radius() {
        let found = sphere("-1, 2.5,-3,4").unwrap();
        assert_eq!(found.centre(), [-1.0, 2.5, -3.0]);
        assert!((4.0..=4.0).contains(&found.radius()));
        assert_eq!(sphere("1,2,-4"), Err(ValueError::Radius));
        assert_eq!(sphere("4"), Err(ValueError::Axes(AxesError(0))));
        assert_eq!(sphere("1,x,2"), Err(ValueError::Number(1)));
        assert_eq!(sphere("1,nan,2"), Err(ValueError::Number(1)));
    }

    #[test]
    fn chunks_have_points_between_and_may_be_negative() {
        assert_eq!(chunk("0.-1.2").unwrap().coords(), [0, -1, 2]);
        assert_eq!(chunk("7").unwrap().coords(), [7]);
        for text in ["", "0..1", "0,1", "a.b", "0.1."] {
            assert_eq!(chunk(text), Err(ValueError::Chunk), "{text}");
        }
    }

    #[test]
    fn a_scale_is_above_0() {
        assert_eq!(scale("2.5"), Ok(2.5));
        for text in ["0", "-1", "nan", "x"] {
            assert_eq!(scale(text), Err(ValueError::Scale), "{text}");
        }
    }

    #[test]
    fn a_value_that_is_no_json_is_text() {
        assert_eq!(chunked_by("5"), Value::from(5));
        assert_eq!(chunked_by("true"), Value::from(true));
        assert_eq!(chunked_by("\"5\""), Value::from("5"));
        assert_eq!(chunked_by("axon"), Value::from("axon"));
        assert_eq!(chunked_by("[1]"), Value::from("[1]"));
    }
}
