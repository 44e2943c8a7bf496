#!/usr/bin/env python3
"""Runs a plan of trainings on all GPUs of a machine within a time, and prints what each reached.

    judge_plan.py PACK WORK recipe [--seeds 0] [--options ".."] [--seconds 1200] [--gpus N ..] [--beside 2] [--keep FOLDER]
    judge_plan.py PACK WORK explore --only NAME ..
    judge_plan.py PACK WORK recipe --extra "--steps 2 --batch 4"     to try the program, also without a GPU

`recipe` trains what is shipped: two teachers, each on half of the texts, which judge the other half, then one run for each seed whose
targets are half the label, half what the teacher says that has not seen the row; of several seeds also the mean. `explore` has what
might be better; it takes several calls with --only. A run starts when those that it needs have ended and enough of the time is left; one whose
.npz is there is not repeated. Table: AUC / accuracy / calibration error after the scale that suits the run on the split `kind`. --keep
copies table, adapters and an archive of margins and logs.
"""
import argparse
import dataclasses
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tarfile
import time

import numpy as np

from judge_model import read_blobs
from judge_scores import best_scale, summary

HERE = pathlib.Path(__file__).resolve().parent
SHIPPED = HERE.parents[1] / 'models/smollm2-135m-judge/adapter.safetensors'
OVERHEAD = 40  # seconds of a run before and behind its training, two on a card
PAUSE = .5


@dataclasses.dataclass
class Run:
    name: str
    options: str
    seconds: float  # of training, at most
    needs: tuple = ()


FOLD = '--rank 32 --alpha 64 --lr 1e-3 --cycles 1'
FULL_FOLD = '--full --lr 1e-4 --decay 0 --cycles 1'
RECIPE = '--teacher {work}/fold0.npz {work}/fold1.npz --trust .5 --epochs 5'
# For 314,253 rows, beside another run. A teacher ends by its steps: stopped at half of them it judges much worse.
TEACHER_SECONDS, RECIPE_SECONDS, SHORT_SECONDS = 200, 880, 600
TEACHERS = ('fold0', 'fold1')
FOLDS = [
    Run('fold0', f'--fold 0 2 {FOLD}', TEACHER_SECONDS),
    Run('fold1', f'--fold 1 2 {FOLD}', TEACHER_SECONDS),
]
EXPLORE = [
    *FOLDS,
    Run('fold2', f'--fold 0 2 --seed 1 {FOLD}', TEACHER_SECONDS),
    Run('fold3', f'--fold 1 2 --seed 1 {FOLD}', TEACHER_SECONDS),
    Run('full0', f'--fold 0 2 {FULL_FOLD}', 225),
    Run('full1', f'--fold 1 2 {FULL_FOLD}', 225),
    Run('untaught', '--epochs 3.5', SHORT_SECONDS),
    Run('four', '--teacher {work}/fold0.npz {work}/fold1.npz {work}/fold2.npz {work}/fold3.npz --trust .5 --epochs 3.5', SHORT_SECONDS,
        (*TEACHERS, 'fold2', 'fold3')),
    Run('by_full', '--teacher {work}/full0.npz {work}/full1.npz --trust .5 --epochs 3.5', SHORT_SECONDS, ('full0', 'full1')),
    Run('six', '--teacher ' + ' '.join(f'{{work}}/{name}.npz' for name in (*TEACHERS, 'fold2', 'fold3', 'full0', 'full1')) +
        ' --trust .5 --epochs 5', RECIPE_SECONDS, (*TEACHERS, 'fold2', 'fold3', 'full0', 'full1')),
    Run('recipe', RECIPE, RECIPE_SECONDS, TEACHERS),
    Run('thinned', RECIPE + ' --drop .04', RECIPE_SECONDS, TEACHERS),
    Run('labelled', RECIPE.replace('--trust .5', '--trust .35'), RECIPE_SECONDS, TEACHERS),
    Run('short', RECIPE.replace('--epochs 5', '--epochs 3.5'), SHORT_SECONDS, TEACHERS),
    Run('shipped', f'--adapter {SHIPPED}', 20),
]


def recipe_runs(options, seeds):
    runs = [Run(f's{seed}', f'--seed {seed} {options}', RECIPE_SECONDS, TEACHERS) for seed in seeds]
    names = tuple(run.name for run in runs)
    mean = '--adapter ' + ' '.join(f'{{work}}/{name}.safetensors' for name in names)
    means = [Run('mean', mean, 20, names)] if len(names) > 1 else []
    # Beside the mean: before a seed it would take the seed's place, and the time for it.
    return [*FOLDS, *runs, *means, Run('shipped', f'--adapter {SHIPPED}', 20, names)]


def gpu_count():
    listed = subprocess.run(['nvidia-smi', '-L'], capture_output=True, text=True) if shutil.which('nvidia-smi') else None
    return listed.stdout.count('GPU ') if listed else 0


class Scheduler:
    """Starts runs in the plan's order, so many beside each other on a GPU."""

    def __init__(self, pack, work, arguments):
        self.pack, self.work, self.arguments = pack, work, arguments
        gpus = arguments.gpus or range(max(1, gpu_count()))
        self.slots = [str(gpu) for _ in range(arguments.beside) for gpu in gpus]
        self.running, self.began = {}, time.time()

    def has(self, name):
        return (self.work / f'{name}.npz').exists() and name not in self.running

    def time_left(self):
        return self.arguments.seconds - (time.time() - self.began)

    def start(self, run, slot):
        options = shlex.split(run.options.format(work=self.work))
        if '--adapter' not in options:
            options += ['--limit', str(run.seconds), *shlex.split(self.arguments.extra)]
        command = [sys.executable, str(HERE / 'judge_train.py'), str(self.pack), str(self.work / run.name), *options]
        log = open(self.work / f'{run.name}.log', 'w')
        environment = os.environ | {'CUDA_VISIBLE_DEVICES': slot, 'PYTHONUNBUFFERED': '1'}
        self.running[run.name] = (subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment), slot)
        print(f'{time.time() - self.began:4.0f} s  {run.name} on GPU {slot}', flush=True)

    def reap(self):
        for name, (process, slot) in list(self.running.items()):
            if process.poll() is not None:
                del self.running[name]
                self.slots.append(slot)
                last = (self.work / f'{name}.log').read_text().strip().splitlines()[-1:]
                print(f'{time.time() - self.began:4.0f} s  {name} exit {process.returncode}: {"".join(last)[:150]}', flush=True)

    def run(self, plan):
        waiting = [run for run in plan if not self.has(run.name)]
        while waiting or self.running:
            self.reap()
            for run in list(waiting):
                dead = any(not self.has(need) and need not in self.running and need not in [r.name for r in waiting] for need in run.needs)
                if dead or self.time_left() < run.seconds + OVERHEAD:
                    waiting.remove(run)
                    print(f'{run.name} not run: ' + ('a run that it needs failed' if dead else 'too little time is left'), flush=True)
                elif self.slots and all(self.has(need) for need in run.needs):
                    waiting.remove(run)
                    self.start(run, self.slots.pop(0))
            if self.time_left() < 0:
                for process, _ in self.running.values():
                    process.kill()
            time.sleep(PAUSE)


def columns_of(work, plan):
    """{name: margins of all test rows}, scores before a cut or a mean of cycles beside them."""
    columns = {}
    for run in plan:
        path = work / f'{run.name}.npz'
        if path.exists():
            loaded = np.load(path)
            columns[run.name] = loaded['margins']
            if 'uncut' in loaded:
                columns[run.name + ' uncut'] = loaded['uncut']
    return columns


def print_table(blobs, columns, file):
    info = blobs['info']
    first, truths = info['counts']['train'], blobs['truths'].astype(int)
    truths, task = truths[first:], np.array(info['tasks'])[blobs['task']]
    split = np.array([name.split(':')[0] for name in task])
    groups = {f'{name}, all': (split == name) & (task != 'dom: examples leads') for name in dict.fromkeys(split)}
    groups |= {name: task == name for name in info['tasks']}
    scales = {name: best_scale(margins[split == 'kind'], truths[split == 'kind']) for name, margins in columns.items()}
    print(f'{"task":32s}{"n":>6s}' + ''.join(f'{name:>19s}' for name in columns), file=file)
    print(f'{"scale":38s}' + ''.join(f'{scales[name]:19.3f}' for name in columns), file=file)
    for name, chosen in groups.items():
        cells = ''.join(f'{summary(margins[chosen] * scales[column], truths[chosen]):>19s}' for column, margins in columns.items())
        print(f'{name[:32]:32s}{chosen.sum():6d}{cells}', file=file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('pack', type=pathlib.Path)
    parser.add_argument('work', type=pathlib.Path)
    parser.add_argument('plan', choices=['recipe', 'explore'])
    parser.add_argument('--options', default=RECIPE, help='of judge_train.py, for `recipe`; {work} is the folder of the runs')
    parser.add_argument('--seeds', type=int, nargs='+', default=[0])
    parser.add_argument('--only', nargs='+', help='these runs of `explore` and what they need')
    parser.add_argument('--seconds', type=float, default=1200)
    parser.add_argument('--gpus', type=int, nargs='+', help='numbers of the GPUs to use (default: all)')
    parser.add_argument('--beside', type=int, default=2, help='runs on one GPU')
    parser.add_argument('--extra', default='', help='options of judge_train.py for every training')
    parser.add_argument('--keep', type=pathlib.Path)
    arguments = parser.parse_args()
    plan = EXPLORE if arguments.plan == 'explore' else recipe_runs(arguments.options, arguments.seeds)
    if arguments.only:
        needed = {need for run in plan if run.name in arguments.only for need in run.needs}
        plan = [run for run in plan if run.name in needed | set(arguments.only)]
    arguments.work.mkdir(parents=True, exist_ok=True)
    Scheduler(arguments.pack.resolve(), arguments.work.resolve(), arguments).run(plan)
    columns = columns_of(arguments.work, plan)
    if not columns:
        sys.exit('no run ended; see the .log files in ' + str(arguments.work))
    blobs = read_blobs(arguments.pack / 'rows.bin')
    table = arguments.work / f'{arguments.plan}.txt'
    with open(table, 'w') as file:
        print_table(blobs, columns, file)
    print(table.read_text())
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        with tarfile.open(arguments.keep / 'runs.tar.gz', 'w:gz') as archive:
            for path in sorted([*arguments.work.glob('*.npz'), *arguments.work.glob('*.log')]):
                archive.add(path, path.name)
        for path in [table, *(arguments.work / f'{run.name}.safetensors' for run in plan)]:
            if path.exists():
                shutil.copy(path, arguments.keep)


if __name__ == '__main__':
    main()
