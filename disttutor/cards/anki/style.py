"""How a card looks in Anki: the template of its two sides, and their style by day and in night mode."""

# Anki fills in a field where its name stands in braces; a part between # and / shows only if that field has a text.
TEMPLATE = {
    "name": "Card",
    "qfmt": """\
<div class="face" lang="{{Language}}">{{Front}}</div>
{{#Hinglish front}}<div class="face second" lang="hi-Latn">{{Hinglish front}}</div>{{/Hinglish front}}""",
    "afmt": """\
{{FrontSide}}
<hr id="answer">
<div class="face" lang="{{Language}}">{{Back}}</div>
{{#Hinglish back}}<div class="face second" lang="hi-Latn">{{Hinglish back}}</div>{{/Hinglish back}}
<div class="about">{{#Lesson}}<div>{{Lesson}}</div>{{/Lesson}}{{#Source}}<div>{{Source}}</div>{{/Source}}</div>""",
}

CSS = """\
.card {
  font-family: system-ui, "Noto Sans", "Noto Sans Devanagari", "Nirmala UI", "Kohinoor Devanagari", sans-serif;
  font-size: 20px; line-height: 1.45; text-align: left; max-width: 42em; margin: 0 auto; padding: 0.6em;
  color: #1f1f1f; background-color: #ffffff;
}
.second { margin-top: 0.8em; padding-left: 0.7em; border-left: 3px solid #767676; font-size: 0.9em; }
.gap, .right { color: #0b57d0; font-weight: bold; }
.remark, .about { color: #595959; font-size: 0.85em; }
.about { margin-top: 1.2em; font-size: 0.7em; }
a { color: #0b57d0; }
li { margin: 0.3em 0; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; font-size: 0.9em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: 0.5em; border: 1px solid #767676; border-radius: 4px; }
table { border-collapse: collapse; }
td, th { border: 1px solid #767676; padding: 0.2em 0.5em; }
.nightMode.card, .night_mode.card, .nightMode .card, .night_mode .card { color: #e6e6e6; background-color: #2c2c2c; }
.nightMode .gap, .nightMode .right, .nightMode a { color: #8ab4f8; }
.night_mode .gap, .night_mode .right, .night_mode a { color: #8ab4f8; }
.nightMode .remark, .nightMode .about, .night_mode .remark, .night_mode .about { color: #bdbdbd; }
"""
