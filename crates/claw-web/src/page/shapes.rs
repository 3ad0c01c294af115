//! Transforms, clips and masks that leave nothing of an element to see.

use super::colour::{Rgb, words};
use super::style::{beyond, far, length};

/// Returns whether a transform shrinks an element to nothing or moves it off the screen.
pub(super) fn is_gone(transform: &str) -> bool {
    transform.split(')').filter_map(|part| part.trim().split_once('(')).any(|(name, inside)| {
        let numbers: Vec<(f32, &str)> = inside.split(',').filter_map(length).collect();
        match (name, numbers.as_slice()) {
            ("scale" | "scalex" | "scaley" | "scale3d", _) => {
                numbers.iter().take(2).any(|(number, _)| number.abs() < 0.01)
            }
            ("matrix", [(a, _), (b, _), (c, _), (d, _), ..]) => (a * d - b * c).abs() < 1e-4,
            ("rotatex" | "rotatey", [(angle, "deg"), ..]) => (angle.abs() % 180.0 - 90.0).abs() < 1.0,
            _ if name.starts_with("translate") => {
                numbers.iter().any(|(number, unit)| *number <= far(unit) || *number >= beyond(unit))
            }
            _ => false,
        }
    })
}

/// Returns whether a `clip-path` leaves no area.
pub(super) fn is_empty(clip: &str) -> bool {
    let Some((shape, inside)) = clip.split_once('(') else { return false };
    let inside = inside.split(')').next().unwrap_or_default();
    let is_nothing = |part: &str| length(part).is_some_and(|(number, _)| number.abs() < 0.01);
    match shape.trim() {
        "inset" => {
            let sides: Vec<f32> = words(inside)
                .map_while(length)
                .map(|(number, unit)| if unit == "%" { number } else { 0.0 })
                .collect();
            let side = |at: usize| sides.get(at).copied();
            let top = side(0).unwrap_or_default();
            let right = side(1).unwrap_or(top);
            let (bottom, left) = (side(2).unwrap_or(top), side(3).unwrap_or(right));
            top + bottom >= 100.0 || left + right >= 100.0
        }
        "circle" => is_nothing(inside),
        "ellipse" => words(inside).take(2).any(is_nothing),
        "polygon" => {
            let point = |text: &str| {
                let mut numbers = words(text).filter_map(length).map(|(number, _)| number);
                Some((numbers.next()?, numbers.next()?))
            };
            let points: Option<Vec<(f32, f32)>> = inside.split(',').map(point).collect();
            points.is_some_and(|points| {
                let next = points.iter().cycle().skip(1);
                let area: f32 =
                    points.iter().zip(next).map(|(one, next)| one.0 * next.1 - next.0 * one.1).sum();
                area.abs() < 1.0
            })
        }
        _ => false,
    }
}

/// Returns whether a mask is a gradient between transparent colours.
pub(super) fn is_clear_mask(mask: &str) -> bool {
    let Some((name, inside)) = mask.split_once('(') else { return false };
    let colours: Vec<Rgb> = inside
        .trim_end()
        .trim_end_matches(')')
        .split(',')
        .filter_map(|part| words(part).find_map(Rgb::parse))
        .collect();
    name.trim().ends_with("gradient") && !colours.is_empty() && colours.into_iter().all(Rgb::is_clear)
}
