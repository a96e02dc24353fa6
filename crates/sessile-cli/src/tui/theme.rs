//! Styles and symbols. Every style has a word or a symbol beside it: colour is never the only signal.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use sessile::World;
use sessile::args::Color as ColorChoice;

/// Meaning of a piece of text on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScreenTone {
    /// Ordinary text.
    Plain,
    /// Heading, or the current thing.
    Strong,
    /// Worth less attention.
    Faint,
    /// All is well.
    Good,
    /// Requires attention.
    Warning,
    /// Wrong, or destructive.
    Bad,
    /// Text of another party, such as an agent.
    Other,
    /// Selected row.
    Selected,
}

/// Styles and symbols of the screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    has_color: bool,
    has_unicode: bool,
    /// Whether the background is light, where yellow and cyan are hard to read.
    is_light: bool,
}

impl Theme {
    /// Theme with or without colour, and with or without characters beyond ASCII.
    pub(crate) const fn new(has_color: bool, has_unicode: bool) -> Self {
        Theme { has_color, has_unicode, is_light: false }
    }

    /// Theme of a terminal: `--color`, then `NO_COLOR` and a terminal without colours; symbols by the locale.
    pub(crate) fn of(world: &World, color: ColorChoice) -> Self {
        let is_plain = world.variable("NO_COLOR").is_some()
            || world.variable("TERM").is_some_and(|term| is_monochrome(&term.to_string_lossy()));
        let has_color = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => !is_plain,
        };
        // The first that is set counts, as in setlocale(3).
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| world.variable(name).filter(|value| !value.is_empty()))
            .map(|value| value.to_string_lossy().to_ascii_uppercase());
        let has_unicode = locale.is_none_or(|locale| locale.contains("UTF-8") || locale.contains("UTF8"));
        Theme::new(has_color, has_unicode)
    }

    /// The same with the colours of a name: `dark`, `light`, or `none`.
    pub(crate) fn named(self, name: &str) -> Option<Self> {
        let (has_color, is_light) = match name {
            "dark" => (true, false),
            "light" => (true, true),
            "none" => (false, false),
            _ => return None,
        };
        Some(Theme { has_color, is_light, ..self })
    }

    /// Style of a tone.
    pub(crate) fn style(self, tone: ScreenTone) -> Style {
        let plain = Style::new();
        let style = match tone {
            ScreenTone::Plain => plain,
            ScreenTone::Strong => return plain.add_modifier(Modifier::BOLD),
            ScreenTone::Faint => return plain.add_modifier(Modifier::DIM),
            ScreenTone::Good => plain.fg(Color::Green),
            ScreenTone::Warning if self.is_light => plain.fg(Color::Magenta).add_modifier(Modifier::BOLD),
            ScreenTone::Other if self.is_light => plain.fg(Color::Blue),
            ScreenTone::Warning => plain.fg(Color::Yellow).add_modifier(Modifier::BOLD),
            ScreenTone::Bad => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
            ScreenTone::Other => plain.fg(Color::Cyan),
            ScreenTone::Selected => return plain.add_modifier(Modifier::REVERSED),
        };
        if self.has_color { style } else { Style { fg: None, ..style } }
    }

    /// Lines around a pane.
    pub(crate) fn borders(self) -> border::Set<'static> {
        if self.has_unicode {
            return border::PLAIN;
        }
        border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        }
    }

    /// One of two symbols: the first beyond ASCII, the second within it.
    pub(crate) fn symbol(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.has_unicode { unicode } else { ascii }
    }

    /// A bar of `width` cells that is filled to `filled` of `whole`.
    pub(crate) fn gauge(self, filled: u64, whole: u64, width: usize) -> String {
        let cells = u64::try_from(width).unwrap_or(u64::MAX);
        let full = filled.min(whole).saturating_mul(cells).checked_div(whole).unwrap_or(0);
        let full = usize::try_from(full).unwrap_or(width).min(width);
        let (on, off) = (self.symbol("█", "#"), self.symbol("░", "."));
        format!("{}{}", on.repeat(full), off.repeat(width - full))
    }
}

/// Whether terminals of this type have no colours, by the names of terminfo.
fn is_monochrome(term: &str) -> bool {
    let is_old = ["vt100", "vt102", "vt220", "vt320"].iter().any(|old| term.starts_with(old));
    term == "dumb" || is_old || term.ends_with("-m") || term.ends_with("-mono")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_without_colors_are_known() {
        for term in ["dumb", "vt100", "vt220-w", "xterm-mono", "linux-m"] {
            assert!(is_monochrome(term), "{term}");
        }
        for term in ["xterm", "xterm-256color", "screen", "tmux-256color", "vte", "linux", "xterm-kitty"] {
            assert!(!is_monochrome(term), "{term}");
        }
    }

    const TONES: [ScreenTone; 8] = [
        ScreenTone::Plain,
        ScreenTone::Strong,
        ScreenTone::Faint,
        ScreenTone::Good,
        ScreenTone::Warning,
        ScreenTone::Bad,
        ScreenTone::Other,
        ScreenTone::Selected,
    ];

    #[test]
    fn theme_without_color_sets_none() {
        for tone in TONES {
            let style = Theme::new(false, true).style(tone);
            assert_eq!((style.fg, style.bg), (None, None), "{tone:?}");
        }
        assert_eq!(Theme::new(true, true).style(ScreenTone::Bad).fg, Some(Color::Red));
    }

    #[test]
    fn gauge_fills_its_width_only() {
        let theme = Theme::new(false, false);
        assert_eq!(theme.gauge(0, 10, 4), "....");
        assert_eq!(theme.gauge(5, 10, 4), "##..");
        assert_eq!(theme.gauge(99, 10, 4), "####");
        assert_eq!(theme.gauge(1, 0, 4), "....");
    }
}
