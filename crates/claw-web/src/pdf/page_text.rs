//! The text of one page, in drawing order, without parts that a reader would not see.
//!
//! Dropped are texts that are drawn invisibly, transparent, in the colour of their background, under an
//! opaque shape, smaller than a point or outside the page. Invisible text of a page that shows only an image
//! comes from the text recognition of a scan, and is kept.

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::xref::XRef;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Shape as _, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, Paint, SoftMask, TransformExt as _, interpret_page,
};

use super::Text;

/// Glyph units per font size.
const UNITS: f64 = 1000.0;
/// Most shapes of a page whose colour is remembered as background.
const GROUNDS: usize = 2_000;
/// Most comparisons of shapes with texts; beyond that, texts of a page count as uncovered.
const COMPARISONS: usize = 20_000_000;
/// Smallest text that a person can read, in points.
const SMALLEST: f64 = 1.0;

/// Reads one page.
pub(super) fn read<'a>(
    page: &Page<'a>,
    cache: &InterpreterCache<'a>,
    xref: &'a XRef,
    settings: InterpreterSettings,
) -> Text {
    let (width, height) = page.render_dimensions();
    let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let transform = page.initial_transform(true).to_kurbo();
    let mut context = Context::new(transform, bounds, cache, xref, settings);
    let mut sheet = Sheet { bounds, ..Sheet::default() };
    interpret_page(page, &mut context, &mut sheet);
    sheet.text()
}

type Colour = [f32; 4];
const WHITE: Colour = [1.0; 4];

/// A page while it is drawn.
#[derive(Default)]
struct Sheet {
    bounds: Rect,
    runs: Vec<Run>,
    /// Shapes in drawing order; `None` if it has no single colour.
    grounds: Vec<(Rect, Option<Colour>)>,
    /// Opacities of the groups that are open.
    groups: Vec<f32>,
    comparisons: usize,
    pictures: bool,
    unknown: usize,
}

/// Glyphs that were drawn together.
struct Run {
    text: String,
    /// The end of the last glyph and the start of the first.
    start: Point,
    end: Point,
    /// The direction of writing, of length 1.
    along: Vec2,
    size: f64,
    sight: Sight,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    Seen,
    Invisible,
    Hidden,
}

impl Sheet {
    /// The background colour at a point; `None` if it is an image or a pattern.
    fn ground(&self, at: Point) -> Option<Colour> {
        self.grounds
            .iter()
            .rev()
            .find(|(area, _)| area.contains(at))
            .map_or(Some(WHITE), |(_, colour)| *colour)
    }

    fn sight(&self, run: &Run, paint: &Paint<'_>, mode: &DrawMode) -> Sight {
        let opacity: f32 = self.groups.iter().product();
        let colour = match paint {
            Paint::Color(colour) => Some(colour.to_rgba().components()),
            Paint::Pattern(_) => None,
        };
        let is_clear = opacity < 0.05 || colour.is_some_and(|colour| colour[3] < 0.05);
        let middle = run.start.midpoint(run.end);
        let is_outside = !self.bounds.inset(1.0).contains(middle);
        if is_clear || is_outside || run.size < SMALLEST {
            return Sight::Hidden;
        }
        if matches!(mode, DrawMode::Invisible) {
            return Sight::Invisible;
        }
        match colour.zip(self.ground(middle)) {
            Some((text, ground)) if is_near(text, ground) => Sight::Hidden,
            _ => Sight::Seen,
        }
    }

    /// Adds a shape that covers earlier drawings and is the background of later ones.
    fn cover(&mut self, area: Rect, colour: Option<Colour>, covers: bool) {
        if covers && self.comparisons < COMPARISONS {
            self.comparisons += self.runs.len();
            for run in &mut self.runs {
                if area.contains(run.start.midpoint(run.end)) {
                    run.sight = Sight::Hidden;
                }
            }
        }
        if self.grounds.len() < GROUNDS {
            self.grounds.push((area, colour));
        }
    }

    /// The text of the page.
    fn text(&self) -> Text {
        let is_seen = |run: &&Run| run.sight == Sight::Seen && !run.text.trim().is_empty();
        let scanned = self.pictures
            && !self.runs.iter().any(|run| is_seen(&run))
            && self.runs.iter().any(|run| run.sight == Sight::Invisible);
        let shown = if scanned { Sight::Invisible } else { Sight::Seen };
        let (mut text, mut before): (String, Option<&Run>) = (String::new(), None);
        let mut hidden = 0;
        for run in &self.runs {
            if run.sight != shown {
                hidden += usize::from(!run.text.trim().is_empty());
                continue;
            }
            if let Some(before) = before {
                text.push_str(between(before.end, run.start, run.along, run.size));
            }
            text.push_str(&run.text);
            before = Some(run);
        }
        Text { text, hidden, scanned, pictures: self.pictures, unknown: self.unknown }
    }
}

/// The white space between the end of one glyph and the start of the next.
fn between(end: Point, start: Point, along: Vec2, size: f64) -> &'static str {
    let way = start - end;
    let (ahead, aside) = (way.dot(along), way.cross(along).abs());
    if aside > size * 1.8 {
        "\n\n"
    } else if aside > size * 0.5 || ahead < -size {
        "\n"
    } else if ahead > size * 0.15 {
        " "
    } else {
        ""
    }
}

impl<'a> Device<'a> for Sheet {
    fn draw_glyph_run(&mut self, glyphs: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        let mut run: Option<Run> = None;
        for glyph in glyphs.glyphs() {
            let place = props.transform * glyph.transform();
            let advance = match &**glyph {
                Glyph::Outline(glyph) => glyph.advance_width(),
                Glyph::Type3(glyph) => glyph.advance_width(),
            };
            let start = place * Point::ZERO;
            let end = place * Point::new(advance.map_or(UNITS / 2.0, f64::from), 0.0);
            let (along, size) = scale(place);
            let text = match glyph.as_unicode() {
                Some(BfString::Char(c)) => c.to_string(),
                Some(BfString::String(text)) => text,
                None => {
                    self.unknown += 1;
                    "\u{fffd}".to_owned()
                }
            };
            match &mut run {
                Some(run) => {
                    let space = between(run.end, start, along, size);
                    let is_there = run.text.ends_with(char::is_whitespace) || text.starts_with(' ');
                    run.text.push_str(if space == " " && is_there { "" } else { space });
                    run.text.push_str(&text);
                    run.end = end;
                }
                None => run = Some(Run { text, start, end, along, size, sight: Sight::Seen }),
            }
        }
        let Some(mut run) = run else { return };
        run.sight = self.sight(&run, &props.paint, mode);
        // Letters that are filled and outlined are drawn twice.
        if let Some(last) =
            self.runs.last_mut().filter(|last| last.start == run.start && last.text == run.text)
        {
            if run.sight == Sight::Seen {
                last.sight = Sight::Seen;
            }
            return;
        }
        self.runs.push(run);
    }

    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        let area = path.bounding_box();
        // Other shapes leave most of their bounding box uncovered.
        if path.area().abs() >= area.area() * 0.9 {
            self.draw_rect(&area, props, mode);
        }
    }

    fn draw_rect(&mut self, rect: &Rect, props: DrawProps<'a>, mode: &DrawMode) {
        if matches!(mode, DrawMode::Stroke(_) | DrawMode::Invisible) || rect.area() < 1.0 {
            return;
        }
        let area = props.transform.transform_rect_bbox(*rect);
        let opacity: f32 = self.groups.iter().product();
        match &props.paint {
            Paint::Color(colour) => {
                let colour = colour.to_rgba().components();
                let is_solid = colour[3] * opacity > 0.95
                    && props.soft_mask.is_none()
                    && matches!(props.blend_mode, BlendMode::Normal);
                if colour[3] * opacity > 0.05 {
                    self.cover(area, is_solid.then_some(colour), is_solid);
                }
            }
            Paint::Pattern(_) => self.cover(area, None, false),
        }
    }

    fn draw_image(&mut self, _: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.pictures = true;
        self.cover(props.transform.transform_rect_bbox(Rect::new(0.0, 0.0, 1.0, 1.0)), None, false);
    }

    fn push_transparency_group(&mut self, opacity: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.groups.push(opacity);
    }

    fn pop_transparency_group(&mut self) {
        self.groups.pop();
    }

    fn push_clip_path(&mut self, _: &ClipPath) {}

    fn pop_clip(&mut self) {}
}

/// The direction of writing and the size of the font.
fn scale(place: Affine) -> (Vec2, f64) {
    let [a, b, c, d, ..] = place.as_coeffs();
    let (along, up) = (Vec2::new(a, b), Vec2::new(c, d));
    let length = along.hypot();
    let along = if length > 0.0 { along / length } else { Vec2::new(1.0, 0.0) };
    (along, up.hypot() * UNITS)
}

/// Returns whether two colours are too close for a person to tell apart.
fn is_near(a: Colour, b: Colour) -> bool {
    a.iter().zip(b).take(3).all(|(a, b)| (a - b).abs() < 0.04)
}
