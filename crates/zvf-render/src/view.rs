//! Viewpoints and the camera.

use core::str::FromStr;

/// A vector or position in space.
pub(crate) type Vector = [f32; 3];

/// The direction from which a picture is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewpoint {
    /// Degrees around the third axis: 0 looks along the second axis, 90 against the first.
    pub azimuth: f64,
    /// Degrees above the plane of the first two axes.
    pub elevation: f64,
    /// `true` for perspective projection.
    pub is_perspective: bool,
    /// `true` if the second axis points down, as rows of images do.
    pub is_flipped: bool,
}

/// Error of parsing a viewpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a view is axial, coronal, sagittal, iso, or azimuth,elevation in degrees")]
pub struct ViewpointError;

impl Viewpoint {
    /// Creates a viewpoint with parallel projection.
    pub const fn new(azimuth: f64, elevation: f64) -> Self {
        Self {
            azimuth,
            elevation,
            is_perspective: false,
            is_flipped: false,
        }
    }

    /// Switches to perspective projection.
    #[must_use]
    pub const fn perspective(mut self) -> Self {
        self.is_perspective = true;
        self
    }

    /// Along the third axis: the first axis points right, the second up.
    pub const AXIAL: Self = Self::new(0.0, 90.0);
    /// Along the second axis: the first axis points right, the third up.
    pub const CORONAL: Self = Self::new(0.0, 0.0);
    /// Along the first axis: the second axis points right, the third up.
    pub const SAGITTAL: Self = Self::new(90.0, 0.0);
    /// From a corner.
    pub const ISO: Self = Self::new(35.0, 24.0);
}

impl FromStr for Viewpoint {
    type Err = ViewpointError;

    fn from_str(text: &str) -> Result<Self, ViewpointError> {
        match text {
            "axial" => Ok(Self::AXIAL),
            "coronal" => Ok(Self::CORONAL),
            "sagittal" => Ok(Self::SAGITTAL),
            "iso" => Ok(Self::ISO),
            _ => {
                let (azimuth, elevation) = text.split_once(',').ok_or(ViewpointError)?;
                let degrees = |text: &str| {
                    let number = text.trim().parse::<f64>().ok();
                    number
                        .filter(|number| number.abs() <= 360.0)
                        .ok_or(ViewpointError)
                };
                Ok(Self::new(degrees(azimuth)?, degrees(elevation)?))
            }
        }
    }
}

/// The axes of the picture in the space of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    right: Vector,
    up: Vector,
    toward: Vector,
}

impl Rotation {
    pub(crate) fn of(view: Viewpoint) -> Self {
        let (azimuth, elevation) = (view.azimuth.to_radians(), view.elevation.to_radians());
        let (sine, cosine) = (azimuth.sin(), azimuth.cos());
        let (high, flat) = (elevation.sin(), elevation.cos());
        let second = if view.is_flipped { -1.0 } else { 1.0 };
        Self {
            right: [cosine, second * sine, 0.0].map(|part| part as f32),
            up: [-sine * high, second * cosine * high, flat].map(|part| part as f32),
            toward: [sine * flat, -second * cosine * flat, high].map(|part| part as f32),
        }
    }

    /// Returns the components to the right, up and toward the viewer.
    pub(crate) fn apply(&self, at: Vector) -> Vector {
        [dot(self.right, at), dot(self.up, at), dot(self.toward, at)]
    }
}

pub(crate) fn dot(a: Vector, b: Vector) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn minus(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn cross(a: Vector, b: Vector) -> Vector {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// Returns the unit vector of this direction; `None` for a zero or non-finite vector.
pub(crate) fn unit(a: Vector) -> Option<Vector> {
    // Scaled first, because squares of large coordinates overflow.
    let max = a.iter().fold(0.0_f32, |max, part| max.max(part.abs()));
    let scaled = a.map(|part| part / max);
    let length = dot(scaled, scaled).sqrt();
    (length.is_finite() && length > 0.0).then(|| scaled.map(|part| part / length))
}

/// A box in the axes of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    pub(crate) low: Vector,
    pub(crate) high: Vector,
}

impl Extent {
    pub(crate) const EMPTY: Self = Self {
        low: [f32::INFINITY; 3],
        high: [f32::NEG_INFINITY; 3],
    };

    pub(crate) fn add(&mut self, at: Vector) {
        for ((low, high), at) in self.low.iter_mut().zip(&mut self.high).zip(at) {
            *low = low.min(at);
            *high = high.max(at);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.low[0] > self.high[0]
    }

    fn centre(&self) -> Vector {
        [0, 1, 2].map(|axis: usize| self.low[axis] / 2.0 + self.high[axis] / 2.0)
    }

    fn size(&self) -> Vector {
        [0, 1, 2].map(|axis: usize| self.high[axis] - self.low[axis])
    }
}

/// A point on the picture: pixels to the right and down, and nearness in units of the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) near: f32,
    /// Magnification relative to the centre.
    pub(crate) zoom: f32,
}

/// The projection from space to the picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Camera {
    rotation: Rotation,
    centre: Vector,
    /// Pixels per unit at the centre.
    pub(crate) scale: f32,
    middle: [f32; 2],
    /// Distance from the centre to the eye; `None` for parallel projection.
    distance: Option<f32>,
    /// Half the extent of the scene along the line of sight.
    pub(crate) depth: f32,
}

/// A rectangle of the picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) from: [f32; 2],
    pub(crate) size: [f32; 2],
}

impl Camera {
    /// Creates a camera that fits `extent` into `window`.
    pub(crate) fn fit(view: Viewpoint, extent: &Extent, window: &Window) -> Self {
        let centre = extent.centre();
        let size = extent.size();
        let max = size.iter().fold(0.0_f32, |max, side| max.max(*side));
        // A single position is shown as if it were one unit wide.
        let max = if max > 0.0 && max.is_finite() {
            max
        } else {
            1.0
        };
        let [width, height, _] = size.map(|side| side.max(max * 1e-3));
        let depth = (size[2] / 2.0).max(max * 1e-3);
        let distance = view.is_perspective.then_some(max * 1.6 + depth);
        // The nearest parts are magnified most.
        let zoom = distance.map_or(1.0, |distance| distance / (distance - depth));
        let scale = (window.size[0] / width).min(window.size[1] / height) / zoom;
        Self {
            rotation: Rotation::of(view),
            centre,
            scale,
            middle: [0, 1].map(|axis: usize| window.from[axis] + window.size[axis] / 2.0),
            distance,
            depth,
        }
    }

    /// Returns the camera enlarged until these positions fill the window. With perspective, the
    /// nearest parts need not be the widest.
    pub(crate) fn tightened(mut self, places: &[Vector], window: &Window) -> Self {
        let mut seen = Extent::EMPTY;
        for spot in places.iter().filter_map(|at| self.spot(*at)) {
            seen.add([spot.x, spot.y, 0.0]);
        }
        let [width, height, _] = seen.size();
        let share = (window.size[0] / width.max(1.0)).min(window.size[1] / height.max(1.0));
        if seen.is_empty() || !share.is_finite() {
            return self;
        }
        let middle = seen.centre();
        for (axis, (own, from)) in self.middle.iter_mut().zip(window.from).enumerate() {
            *own = from + window.size[axis] / 2.0 + (*own - middle[axis]) * share;
        }
        self.scale *= share;
        self
    }

    pub(crate) fn rotation(&self) -> &Rotation {
        &self.rotation
    }

    /// Projects a position; `None` behind the eye.
    pub(crate) fn spot(&self, at: Vector) -> Option<Spot> {
        let [x, y, near] = minus(self.rotation.apply(at), self.centre);
        let zoom = match self.distance {
            None => 1.0,
            Some(distance) => distance / (distance - near),
        };
        let scale = self.scale * zoom;
        let spot = Spot {
            x: self.middle[0] + x * scale,
            y: self.middle[1] - y * scale,
            near,
            zoom,
        };
        (zoom > 0.0 && spot.x.is_finite() && spot.y.is_finite()).then_some(spot)
    }

    /// Returns the distance of two spots along the line of sight, in pixels.
    pub(crate) fn depth_between(&self, a: Spot, b: Spot) -> f32 {
        (b.near - a.near).abs() * self.scale * f32::midpoint(a.zoom, b.zoom)
    }

    /// Returns the nearness of a point on a face by its magnification, which is linear on the
    /// picture under perspective.
    pub(crate) fn near(&self, zoom: f32, near: f32) -> f32 {
        match self.distance {
            None => near,
            Some(distance) => distance - distance / zoom,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(view: Viewpoint, right: Vector, up: Vector) {
        let rotation = Rotation::of(view);
        let is_near = |a: Vector, b: Vector| minus(a, b).iter().all(|part| part.abs() < 1e-6);
        assert!(
            is_near(rotation.apply(right), [1.0, 0.0, 0.0]),
            "{rotation:?}"
        );
        assert!(is_near(rotation.apply(up), [0.0, 1.0, 0.0]), "{rotation:?}");
        assert!(
            is_near(cross(rotation.right, rotation.up), rotation.toward),
            "{rotation:?}"
        );
    }

    #[test]
    fn views_have_axes_where_they_say() {
        let [x, y, z] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        check(Viewpoint::AXIAL, x, y);
        check(Viewpoint::CORONAL, x, z);
        check(Viewpoint::SAGITTAL, y, z);
        check("0,90".parse().unwrap(), x, y);
        let mut flipped = Viewpoint::AXIAL;
        flipped.is_flipped = true;
        let down = Rotation::of(flipped).apply(y);
        assert!(down[1] < -0.999, "{down:?}");
    }

    #[test]
    fn what_is_no_view_is_refused() {
        for text in ["", "up", "1", "1,2,3", "nan,0", "inf,0", "1e9,0"] {
            assert_eq!(text.parse::<Viewpoint>(), Err(ViewpointError), "{text}");
        }
    }

    #[test]
    fn everything_comes_into_the_window() {
        let window = Window {
            from: [10.0, 20.0],
            size: [300.0, 200.0],
        };
        for view in [
            Viewpoint::ISO,
            Viewpoint::ISO.perspective(),
            Viewpoint::AXIAL.perspective(),
        ] {
            let rotation = Rotation::of(view);
            let mut extent = Extent::EMPTY;
            let corners: Vec<Vector> = (0..8_u8)
                .map(|at| {
                    let side = |bit: u8, size: f32| if at & bit > 0 { size } else { 0.0 };
                    [side(1, 3.0), side(2, 70.0), side(4, 20.0)]
                })
                .collect();
            for at in &corners {
                extent.add(rotation.apply(*at));
            }
            let camera = Camera::fit(view, &extent, &window);
            let tight = camera.tightened(&corners, &window);
            let spots: Vec<Spot> = corners.iter().filter_map(|at| tight.spot(*at)).collect();
            let wide = spots
                .iter()
                .fold((f32::MAX, f32::MIN), |(a, b), s| (a.min(s.x), b.max(s.x)));
            let tall = spots
                .iter()
                .fold((f32::MAX, f32::MIN), |(a, b), s| (a.min(s.y), b.max(s.y)));
            let is_filled = wide.1 - wide.0 > 299.0 || tall.1 - tall.0 > 199.0;
            assert!(
                is_filled && wide.0 > 9.0 && tall.1 < 221.0,
                "{wide:?} {tall:?}"
            );
            for corner in corners {
                let spot = camera.spot(corner).unwrap();
                assert!(
                    (9.9..=310.1).contains(&spot.x) && (19.9..=220.1).contains(&spot.y),
                    "{spot:?}"
                );
                assert!((camera.near(spot.zoom, spot.near) - spot.near).abs() < 1e-3);
            }
        }
    }
}
