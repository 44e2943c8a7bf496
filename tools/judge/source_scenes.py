"""Rows from short texts, each with statements of its own that are true or false of it (banks/scenes.txt and its like)."""
import dataclasses

from wording import PAIR_CLAIM, phrase_wordings


@dataclasses.dataclass
class Scene:
    text: str
    true: list
    false: list


def read_scenes(path):
    scenes = []
    for line in path.read_text(encoding='utf8').splitlines():
        mark, rest = line[:1], line[2:]
        if mark == '=':
            scenes.append(Scene(rest, [], []))
        elif mark in ('+', '-'):
            (scenes[-1].true if mark == '+' else scenes[-1].false).extend(part.strip() for part in rest.split(' | '))
    return scenes


class SceneSource:

    def __init__(self, scenes, rows, filler, claims=.22):
        """`claims`: the share of statements that become the partner of a pair."""
        self.scenes, self.rows, self.pick, self.filler, self.claims = scenes, rows, rows.random, filler, claims

    def is_held(self, scene):
        """A sixth of the scenes are unseen kinds: neither their texts nor their statements train."""
        return self.rows.is_test_text(scene.text, 6)

    def make_one(self, scene, held):
        truth = self.pick.random() < .5
        claim = self.pick.choice(scene.true if truth else scene.false)
        text = self.document(scene, held)
        if self.pick.random() < self.claims:
            said = claim[0].upper() + claim[1:] + '.'
            self.rows.put_pair(PAIR_CLAIM, (text, said), truth, 'pair:claim', held=held)
        else:
            wordings = phrase_wordings('s', [claim], [claim], ['writer'])
            self.rows.put(wordings, text, truth, 'scene', 'scenes', held=held)

    def document(self, scene, held):
        """The scene alone, or before or behind a sentence or another scene of the same side of the split."""
        chance = self.pick.random()
        if chance > .25:
            return scene.text
        other = self.pick.choice(self.filler)
        if chance < .15:
            other = self.pick.choice([item for item in self.scenes if self.is_held(item) == held and item is not scene]).text
        return self.pick.choice([' ', '\n']).join([scene.text, other][::self.pick.choice([1, -1])])

    def make(self, each, each_held):
        for scene in self.scenes:
            self.rows.begin('scene ' + scene.text)
            held = self.is_held(scene)
            for _ in range(each_held if held else each):
                self.make_one(scene, held)
