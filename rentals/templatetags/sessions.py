"""A browser's own description of itself, as a person would name it."""

from django import template

register = template.Library()

# In this order: later ones claim in their text to be the earlier ones' kin.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("HeadlessChrome", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
    ("curl", "curl"),
    ("python", "Python"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)


@register.filter
def browser(user_agent: str) -> str:
    """`{{ session.user_agent|browser }}` -> "Firefox on Linux"; one nobody knows is shown by its first words."""
    name = next((name for sign, name in _BROWSERS if sign in user_agent), "")
    system = next((system for sign, system in _SYSTEMS if sign in user_agent), "")
    if name:
        return f"{name} on {system}" if system else name
    printable = "".join(letter for letter in user_agent if letter.isprintable()).strip()
    return printable[:40] or "Unknown browser"
