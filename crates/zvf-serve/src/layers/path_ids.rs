//! Ids of paths that every query gives.

/// The bit of the ids of all paths of an object but the first.
const FURTHER: u64 = 1 << 63;

/// The ids of the paths of a store. The first path of an object has the id of the object, and the
/// others are numbered in the order of the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathIds {
    /// Objects with several paths, in ascending order after [`finish`](Self::finish).
    objects: Vec<FurtherPaths>,
    last: Option<i64>,
}

/// The paths of an object after its first.
#[derive(Clone, Copy, Debug)]
struct FurtherPaths {
    object: i64,
    paths: u64,
    /// The number of the first of them among those of all objects.
    first: u64,
}

impl PathIds {
    /// Counts a path. The paths of an object follow each other.
    pub(crate) fn add(&mut self, object: i64) {
        if self.last.replace(object) != Some(object) {
            return;
        }
        match self.objects.last_mut().filter(|of| of.object == object) {
            Some(known) => known.paths = known.paths.saturating_add(1),
            None => self.objects.push(FurtherPaths {
                object,
                paths: 1,
                first: 0,
            }),
        }
    }

    /// Numbers the paths.
    pub(crate) fn finish(&mut self) {
        self.objects.sort_by_key(|of| of.object);
        let mut next = 0_u64;
        for object in &mut self.objects {
            object.first = next;
            next = next.saturating_add(object.paths);
        }
    }

    /// Returns the id of a path by its object and its number in the object; `None` for objects with
    /// negative ids.
    pub(crate) fn id(&self, object: i64, number: u64) -> Option<u64> {
        let id = u64::try_from(object).ok()?;
        let Some(number) = number.checked_sub(1) else {
            return Some(id);
        };
        let at = self.objects.binary_search_by_key(&object, |of| of.object);
        let of = at.ok().and_then(|at| self.objects.get(at))?;
        (number < of.paths).then(|| FURTHER | of.first.saturating_add(number))
    }

    /// Returns the object of the path with this id.
    #[cfg(feature = "server")]
    pub(crate) fn object(&self, id: u64) -> Option<i64> {
        if let Ok(object) = i64::try_from(id) {
            return Some(object);
        }
        let number = id & !FURTHER;
        let after = self.objects.partition_point(|of| of.first <= number);
        let of = self.objects.get(after.checked_sub(1)?)?;
        (number.saturating_sub(of.first) < of.paths).then_some(of.object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_to_objects() {
        let mut ids = PathIds::default();
        for object in [7, 7, i64::MAX, i64::MAX, i64::MAX, 3, 1 << 40, 5, 5, -1, -1] {
            ids.add(object);
        }
        ids.finish();
        assert_eq!(ids.id(3, 0), Some(3));
        assert_eq!(ids.id(i64::MAX, 0), Some(FURTHER - 1));
        assert_eq!(
            (ids.id(3, 1), ids.id(7, 2), ids.id(-2, 0)),
            (None, None, None)
        );
        let paths = [(5, 1), (7, 1), (i64::MAX, 1), (i64::MAX, 2)];
        for (object, number) in paths {
            let id = ids.id(object, number).unwrap();
            assert!(id >= FURTHER);
            assert_eq!(ids.object(id), Some(object));
        }
        let mut found = paths.map(|(object, number)| ids.id(object, number));
        found.sort_unstable();
        assert!(found.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(
            ids.object(720_575_940_621_234_567),
            Some(720_575_940_621_234_567)
        );
        assert_eq!(ids.object(u64::MAX), None);
        assert_eq!(PathIds::default().object(FURTHER), None);
    }
}
