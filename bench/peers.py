"""Fits of Spark MLlib and Dask-ML, each in an interpreter of its own that need not have twofold.

    PYTHON bench/peers.py spark|dask-ml JOB FOLDER OPTIONS    OPTIONS as JSON: workers, k, sweeps, reg, …

FOLDER holds the data as Parquet and `.npy`. The fit is made twice; the last line printed is JSON with the seconds that
reading, the first and the second fit took, and `found.npz` in FOLDER has what was found.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def time_twice(fit: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result of the second of two fits, and the seconds of both."""
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        found = fit()
        seconds.append(time.perf_counter() - began)
    return found, {"first": seconds[0], "seconds": seconds[1]}


# ---- Spark MLlib -------------------------------------------------------------------------------------------------


def start_spark(workers: int) -> Any:
    """A session on some threads of one Java process, with Java's own vector instructions for its BLAS."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.driver.memory": "8g",
        "spark.driver.maxResultSize": "4g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(4 * workers),
        "spark.default.parallelism": str(4 * workers),
        "spark.driver.extraJavaOptions": "--add-modules=jdk.incubator.vector",
    }
    builder = SparkSession.builder.master(f"local[{workers}]").appName("peer")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def keep(frame: Any, parts: int) -> Any:
    """The frame in the memory of the workers."""
    frame = frame.repartition(parts).cache()
    frame.count()
    return frame


def spark(job: str, folder: str, asked: dict[str, Any]) -> dict[str, float]:
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions

    began = time.perf_counter()
    session = start_spark(asked["workers"])
    started, parts = time.perf_counter() - began, 4 * asked["workers"]
    began = time.perf_counter()
    frame = session.read.parquet(f"{folder}/table")
    if job in ("kmeans", "pca"):
        frame = frame.select(array_to_vector("x").alias("features"))
    elif job == "lda":
        frame = read_counts(frame, asked["columns"])
    else:
        frame = frame.select("user", "item", functions.col("rating").cast("float"))
    frame = keep(frame, parts)
    reading = time.perf_counter() - began
    found, seconds = time_twice(lambda: SPARK[job](frame, asked))
    np.savez(f"{folder}/found.npz", **SPARK_FOUND[job](session, found, folder))
    session.stop()
    return {"start": started, "reading": reading, **seconds}


def read_counts(frame: Any, columns: int) -> Any:
    from pyspark.ml.linalg import Vectors, VectorUDT
    from pyspark.sql import functions

    as_vector = functions.udf(lambda i, x: Vectors.sparse(columns, i, x), VectorUDT())
    return frame.select(as_vector("indices", "values").alias("features"))


def spark_kmeans(frame: Any, asked: dict[str, Any]) -> Any:
    from pyspark.ml.clustering import KMeans

    return KMeans(k=asked["k"], maxIter=asked["sweeps"], tol=0.0, seed=1).fit(frame)


def spark_pca(frame: Any, asked: dict[str, Any]) -> Any:
    from pyspark.ml.feature import PCA

    return PCA(k=asked["k"], inputCol="features").fit(frame)


def spark_als(frame: Any, asked: dict[str, Any]) -> Any:
    from pyspark.ml.recommendation import ALS

    blocks = 2 * asked["workers"]
    model = ALS(
        rank=asked["k"], maxIter=asked["sweeps"], regParam=asked["reg"], numUserBlocks=blocks, numItemBlocks=blocks,
        coldStartStrategy="nan", seed=1, intermediateStorageLevel="MEMORY_AND_DISK",
    )  # fmt: skip
    model = model.fit(frame)
    model.userFactors.count(), model.itemFactors.count()
    return model


def spark_lda(frame: Any, asked: dict[str, Any]) -> Any:
    from pyspark.ml.clustering import LDA

    more = {"optimizer": "em"}  # whose priors are one more than those of the variational ones
    more |= {"docConcentration": [1 + asked["alpha"]], "topicConcentration": 1 + asked["beta"]}
    if asked["method"] == "online":
        more = {"optimizer": "online", "docConcentration": [asked["alpha"]], "topicConcentration": asked["beta"]}
        more |= {"subsamplingRate": asked["rate"], "optimizeDocConcentration": False}
    model = LDA(k=asked["k"], maxIter=asked["sweeps"], seed=1, **more).fit(frame)
    return np.asarray(model.topicsMatrix().toArray())


def predict_spark(session: Any, model: Any, folder: str) -> dict[str, np.ndarray]:
    held = session.read.parquet(f"{folder}/held.parquet")
    rows = model.transform(held).select("at", "prediction").collect()
    return {"at": np.array([row[0] for row in rows]), "prediction": np.array([row[1] for row in rows])}


SPARK = {"kmeans": spark_kmeans, "pca": spark_pca, "als": spark_als, "lda": spark_lda}
SPARK_FOUND: dict[str, Callable[..., dict[str, np.ndarray]]] = {
    "kmeans": lambda session, model, folder: {"centers": np.array(model.clusterCenters())},
    "pca": lambda session, model, folder: {"axes": np.asarray(model.pc.toArray()).T},
    "als": predict_spark,
    "lda": lambda session, topics, folder: {"topics": topics.T},
}

# ---- Dask-ML -----------------------------------------------------------------------------------------------------


def dask_ml(job: str, folder: str, asked: dict[str, Any]) -> dict[str, float]:
    import dask.array as da
    from dask.distributed import Client, LocalCluster, wait

    began = time.perf_counter()
    options = {"n_workers": asked["workers"], "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster):
        started = time.perf_counter() - began
        began = time.perf_counter()
        X = np.load(f"{folder}/X.npy", mmap_mode="r")
        X = da.from_array(X, chunks=(-(-len(X) // (2 * asked["workers"])), X.shape[1])).persist()
        wait(X)
        reading = time.perf_counter() - began
        found, seconds = time_twice(lambda: DASK_ML[job](X, asked))
    np.savez(f"{folder}/found.npz", **found)
    return {"start": started, "reading": reading, **seconds}


def dask_ml_kmeans(X: Any, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    from dask_ml.cluster import KMeans

    model = KMeans(asked["k"], max_iter=asked["sweeps"], tol=0.0, random_state=0).fit(X)
    return {"centers": np.asarray(model.cluster_centers_)}


def dask_ml_pca(X: Any, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    from dask_ml.decomposition import PCA

    return {"axes": np.asarray(PCA(asked["k"], svd_solver=asked["solver"], random_state=0).fit(X).components_)}


DASK_ML = {"kmeans": dask_ml_kmeans, "pca": dask_ml_pca}

if __name__ == "__main__":
    logging.disable(logging.WARNING)
    peer, job, folder, asked = sys.argv[1:]
    run = {"spark": spark, "dask-ml": dask_ml}[peer]
    print(json.dumps(run(job, folder, json.loads(asked))))
